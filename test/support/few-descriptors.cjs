// Preloaded into a process of the runtime: gives it few descriptors (`ulimit -n`), from its start on.
const { execFileSync } = require('node:child_process')
const { isMainThread } = require('node:worker_threads')

const limit = process.env.TEST_DESCRIPTORS
if (isMainThread) execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${limit}:${limit}`])
