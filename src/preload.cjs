// Every start preloads this file (`--require`), in each of its threads: it loads TypeScript.
require('./preload/node-version.cjs')
require('./preload/thread-pool.cjs')
const { isTsx } = require('./preload/chosen-loader.cjs')

if (isTsx) require('./preload/transpiler-cache.cjs')
require('./preload/heddle-name.cjs')
if (!isTsx) require('./preload/typescript/register.cjs').register()
