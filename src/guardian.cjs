// What `npm start` runs: a small parent that starts the runtime as its child, and again when it dies. Plain JavaScript, few modules: it has to be
// there when nothing else is.
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { setFlagsFromString } = require('node:v8')
const { isGuardianOff } = require('./guardian/switch.cjs')

const PRELOAD = join(__dirname, 'preload.cjs')
const MAIN = join(__dirname, 'main.ts')
/** As on the command line of `npm run dev`. */
const LOADER_ARGUMENTS = ['--require', PRELOAD, '--import', pathToFileURL(require.resolve('tsx')).href]

/** The runtime in this very process. */
async function runAlone() {
  require(PRELOAD)
  // The lanes take the loader from here: see `laneLoader`.
  process.execArgv.push(...LOADER_ARGUMENTS)
  await import('tsx')
  await import(pathToFileURL(MAIN).href)
}

const args = process.argv.slice(2)
// One tool is booted, and that is all: nothing is there to be started again.
const isBootOnly = args.some((arg) => arg.startsWith('--boot-tool'))
if (isBootOnly || isGuardianOff()) void runAlone()
else {
  // Nothing here is run so often that it would have to be fast, and the compilers alone take 4 MB.
  for (const compiler of ['--no-opt', '--no-sparkplug']) setFlagsFromString(compiler)
  const { Guardian } = require('./guardian/guardian.cjs')
  new Guardian([...LOADER_ARGUMENTS, MAIN, ...args]).start()
}
