const { join } = require('node:path')

const PRELOAD = join(__dirname, 'preload.cjs')

/** Node's arguments before every file of the runtime. */
const LOADER_ARGUMENTS = ['--require', PRELOAD]

module.exports = { LOADER_ARGUMENTS, PRELOAD }
