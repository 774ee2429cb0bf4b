// Every start preloads this file (`--require`), before the TypeScript loader.
require('./preload/node-version.cjs')
require('./preload/thread-pool.cjs')
require('./preload/transpiler-cache.cjs')
require('./preload/heddle-name.cjs')
