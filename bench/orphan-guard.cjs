// Preloaded into every server under test: when the benchmark that started it has ended in any way, the server ends and its files are removed.
// Plain JavaScript, because it is preloaded, in worker threads too.
const { rmSync } = require('node:fs')
const { isMainThread } = require('node:worker_threads')

// The runtime under a guardian outlives it for as long as it drains.
if (isMainThread && process.channel && process.env.HEDDLE_FLIGHT_DIR === undefined) {
  process.on('disconnect', () => {
    if (process.env.HEDDLE_BENCH_DIR) rmSync(process.env.HEDDLE_BENCH_DIR, { recursive: true, force: true })
    // Not by `process.exit`, which waits for ever for a thread that does not end.
    process.kill(process.pid, 'SIGKILL')
  })
  // Otherwise this listener would keep a drained server from ending.
  process.channel.unref()
}
