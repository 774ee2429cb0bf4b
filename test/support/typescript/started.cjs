const childProcess = require('node:child_process')
const { pathToFileURL } = require('node:url')

/**
 * For a process that starts the runtime with tsx by itself, as the guardian and the testing kit do: what it starts loads TypeScript as the
 * tests do. A start with tsx costs two seconds of processor time, of which it costs half a second so.
 */
const REGISTER = require.resolve('./register.cjs')
const TSX = ['tsx', pathToFileURL(require.resolve('tsx')).href]

if (process.versions.node.startsWith('20.') && process.env.TEST_LOADER !== 'tsx') {
  const { spawn } = childProcess
  childProcess.spawn = (command, args, options) => {
    const at = args.findIndex((flag, n) => flag === '--import' && TSX.includes(args[n + 1]))
    // Before all others: see `register.cjs`.
    const own = at < 0 ? args : ['--require', REGISTER, ...args.toSpliced(at, 2)]
    return spawn(command, own, options)
  }
}
