// Loaded before a process: its clock is an hour ahead from SIGUSR2 on, as if somebody had set it.
const now = Date.now
let aheadMs = 0
Date.now = () => now() + aheadMs
if (require('node:worker_threads').isMainThread)
  process.on('SIGUSR2', () => {
    aheadMs = 3_600_000
  })
