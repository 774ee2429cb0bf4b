// What `npm start` runs: a small parent that starts the runtime as its child, and again when it dies. Plain JavaScript, few modules: it has to be
// there when nothing else is.
const { LOADER_ARGUMENTS, PRELOAD, sourceFile } = require('./preload/launch.cjs')
const { setFlagsFromString } = require('node:v8')
const { followNpm } = require('./guardian/npm-parent.cjs')
const { isGuardianOff, isStartedByNpm, mode, nodeOptions, processCount } = require('./guardian/switch.cjs')

const MAIN = sourceFile('main')

/** The runtime in this very process. */
function runAlone() {
  // Node knows nothing of these: the lanes take them from here, see `LanePool`.
  process.execArgv.push(...LOADER_ARGUMENTS)
  require(PRELOAD)
  require(MAIN)
}

const args = process.argv.slice(2)
// One tool is booted, and that is all: nothing is there to be started again.
const isBootOnly = args.some((arg) => arg.startsWith('--boot-tool'))
if (!isBootOnly) process.env.NODE_ENV = mode()
if (!isBootOnly && isStartedByNpm()) followNpm()
if (isBootOnly || isGuardianOff()) runAlone()
else {
  // Nothing here is run so often that it would have to be fast, and the compilers alone take 4 MB.
  for (const compiler of ['--no-opt', '--no-sparkplug']) setFlagsFromString(compiler)
  const { Guardian } = require('./guardian/guardian.cjs')
  process.env.NODE_OPTIONS = nodeOptions()
  // What somebody has told Node is meant for the service; the port of a debugger is this one's.
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--inspect'))
  new Guardian([...flags, ...LOADER_ARGUMENTS, MAIN, ...args], processCount()).start()
}
