import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/**
 * What `--import tsx` is to the service, for tests and the processes that they start: hundreds, each of which spends a third of its start in tsx.
 * Only the main thread of Node 20 differs: a hook that strips types and keeps what it has stripped, and nothing else. Every lane and
 * every other thread loads tsx, and so does everything that a test starts as users do.
 */
if (isMainThread && process.versions.node.startsWith('20.')) {
  process.setSourceMapsEnabled(true)
  register('./strip-types.mjs', import.meta.url)
} else await import('tsx')
