import { setTimeout as sleep } from 'node:timers/promises'
import { type Books, post, write } from './clients.ts'
import type { Fault } from './schedule.ts'

/** How long the whole process stands still, milliseconds. */
const PAUSE_MS = 1000

/** Makes the faults happen, each at its time; those of one moment overlap. Resolves when the last one is over. */
export async function inflict(books: Books, faults: readonly Fault[], startedMs: number): Promise<void> {
  const under: Promise<unknown>[] = []
  for (const fault of faults) {
    await sleep(Math.max(0, startedMs + fault.atMs - performance.now()))
    under.push(strike(books, fault))
  }
  await Promise.all(under)
}

async function strike(books: Books, { kind, delayMs }: Fault): Promise<void> {
  const { heddle, nextNumber, seed } = books
  if (kind === 'pause') {
    heddle.process.kill('SIGSTOP')
    await sleep(PAUSE_MS)
    heddle.process.kill('SIGCONT')
  } else if (kind === 'poison') {
    const number = nextNumber()
    await write(books, 'poison', '/chaos/poison', { number }, { number, key: String(number), course: 'poison' })
  } else {
    await post(heddle, `/chaos/faults/${kind}`, { delay_ms: delayMs }, `chaos-${seed}-${nextNumber()}`)
  }
}
