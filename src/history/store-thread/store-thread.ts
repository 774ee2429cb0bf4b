/** Entry of the history's thread, of which a process has one. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../core/errors/description.ts'
import type { FromStore, StoreInit, ToStore } from '../messages.ts'
import { Collector } from './collector.ts'
import { Questions } from './questions.ts'
import { HistoryStore } from './store.ts'

/** Lower priority than the threads that answer requests; niceness is 0 to 19. */
const NICENESS = 10

/** On Linux each thread has its own priority, which is set by the thread's number. */
function giveWay(): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICENESS)
  } catch {
    // Not Linux, or not allowed: the thread keeps the normal priority.
  }
}

giveWay()
const port = parentPort!
const init = workerData as StoreInit
const tell = (message: FromStore): void => port.postMessage(message)
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
