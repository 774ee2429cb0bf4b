// Preloaded into every server under test: when the benchmark that started it is gone, however that ended, the server ends and its files go.
// Plain JavaScript because worker threads preload it too, and on Node 20 there is no tsx in them yet at that point.
import { rmSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.channel) {
  process.on('disconnect', () => {
    if (process.env.HEDDLE_BENCH_DIR) rmSync(process.env.HEDDLE_BENCH_DIR, { recursive: true, force: true })
    process.exit(1)
  })
  // The listener alone would keep a drained server from ending.
  process.channel.unref()
}
