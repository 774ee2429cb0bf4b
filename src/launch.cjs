const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { isCompiled } = require('./preload/compiled.cjs')

const PRELOAD = join(__dirname, 'preload.cjs')

/**
 * Node's arguments before every file of the runtime. Plugins are TypeScript in both. The compiled runtime loads everything with `require`, so it
 * needs that half of the loader alone.
 */
const LOADER_ARGUMENTS = isCompiled
  ? ['--require', PRELOAD, '--require', require.resolve('tsx/cjs')]
  : ['--require', PRELOAD, '--import', pathToFileURL(require.resolve('tsx')).href]

module.exports = { LOADER_ARGUMENTS, PRELOAD }
