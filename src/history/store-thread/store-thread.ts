/** Entry of the history's thread, of which a process has one. */
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../core/errors/description.ts'
import { watchGuardian } from '../../core/modules/guardian-watch.ts'
import { giveWay } from '../../core/modules/thread-priority.ts'
import type { FromStore, StoreInit, ToStore } from '../messages.ts'
import { Collector } from './collector.ts'
import { Questions } from './questions.ts'
import { HistoryStore } from './store.ts'

giveWay()
const port = parentPort!
const init = workerData as StoreInit
const tell = (message: FromStore): void => port.postMessage(message)
if (init.shutdownMs !== null) watchGuardian(init.shutdownMs)
const store = new HistoryStore(init)
const questions = new Questions(store.database)
const collector = new Collector(store, (why) => tell({ type: 'trouble', why }))
for (const source of init.sources) collector.add(source)
port.on('message', (message: ToStore) => {
  switch (message.type) {
    case 'source':
      return collector.add(message.source)
    case 'source-gone':
      return collector.remove(message.id)
    case 'query': {
      const { number, query } = message
      try {
        // What has happened before the question belongs into the answer.
        collector.collect()
        return tell({ type: 'answer', number, answer: questions.answer(query) })
      } catch (thrown) {
        return tell({ type: 'failed', number, why: messageOf(thrown) })
      }
    }
    case 'flush':
      collector.collect()
      store.close()
      return tell({ type: 'flushed' })
  }
})
collector.start()
tell({ type: 'up' })
