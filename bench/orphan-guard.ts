// Preloaded into every server under test: ends it when the benchmark that started it is gone, however that ended.
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.channel) {
  process.on('disconnect', () => process.exit(1))
  // The listener alone would keep a drained server from ending.
  process.channel.unref()
}
