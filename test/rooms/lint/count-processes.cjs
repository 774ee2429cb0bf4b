// Loaded before everything in each process of a test: a line for each process, with what it runs.
const { isMainThread } = require('node:worker_threads')
if (isMainThread) require('node:fs').appendFileSync(process.env.PROCESS_LOG, `${process.argv[1]}\n`)
