/** The thread's end of a side thread: it has a low priority, and does what the primary says. */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../core/errors/description.ts'
import { ownTask } from '../core/schedule/thread-clock.cjs'
import type { FromSideThread, SideThreadData, ThreadRing, ToSideThread } from './side-thread.ts'

/** What reads the rings. */
export interface RingsReader {
  add(ring: ThreadRing): void
  /** Its thread has ended: the ring is read once more. */
  remove(id: number): void
  start(): void
  answer?(question: unknown): unknown
  hurry?(): void
  /** @returns how much was left when the time was up */
  flush(withinMs: number): number | Promise<number>
}

/** @param make gets what the thread was started with, and what tells the primary of something */
export function serveSideThread<Init, News>(make: (init: Init, tell: (news: News) => void) => RingsReader): void {
  giveWay()
  const post = (message: FromSideThread): void => parentPort!.postMessage(message)
  const { init, rings } = workerData as SideThreadData
  const reader = make(init as Init, (news) => post({ type: 'news', news }))
  for (const ring of rings) reader.add(ring)
  parentPort!.on('message', (message: ToSideThread) => {
    switch (message.type) {
      case 'ring':
        return reader.add(message.ring)
      case 'ring-gone':
        return reader.remove(message.id)
      case 'question':
        return post(answered(reader, message.number, message.question))
      case 'hurry':
        takePlace()
        return reader.hurry?.()
      case 'flush':
        void Promise.resolve(reader.flush(message.withinMs)).then((left) => post({ type: 'flushed', left }))
    }
  })
  reader.start()
  post({ type: 'up' })
}

function answered(reader: RingsReader, number: number, question: unknown): FromSideThread {
  try {
    return { type: 'answer', number, answer: reader.answer?.(question) }
  } catch (thrown) {
    return { type: 'failed', number, why: messageOf(thrown) }
  }
}

/** 0 to 19: higher is less urgent. */
const NICENESS = 10

/**
 * Gives this thread a lower priority than those that answer requests. On Linux each thread has its own, which is set by the thread's number;
 * elsewhere nothing changes.
 */
const giveWay = (): void => setNiceness(NICENESS)

/** Gives this thread the normal priority again, where the process may: root, or who has the capability SYS_NICE. */
const takePlace = (): void => setNiceness(0)

function setNiceness(niceness: number): void {
  try {
    const task = ownTask()
    if (task > 0) setPriority(task, niceness)
  } catch {
    // Not allowed: the thread keeps the priority that it has.
  }
}
