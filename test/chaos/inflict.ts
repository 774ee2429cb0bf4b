import { setTimeout as sleep } from 'node:timers/promises'
import { type Books, post, write } from './clients.ts'
import type { Outcome } from './ledger.ts'
import type { Fault } from './schedule.ts'

/** How long the whole process stands still, milliseconds. */
const PAUSE_MS = 1000
/** No lane is up, or the fault's plugin is set aside. */
const REFUSED = 503

/** Makes the faults happen, each at its time; those of one moment overlap. Resolves when the last one is over. @returns how many found no lane to strike */
export async function inflict(books: Books, faults: readonly Fault[], startedMs: number): Promise<number> {
  const under: Promise<Outcome>[] = []
  for (const fault of faults) {
    await sleep(Math.max(0, startedMs + fault.atMs - performance.now()))
    under.push(strike(books, fault))
  }
  return (await Promise.all(under)).filter((outcome) => outcome === REFUSED).length
}

async function strike(books: Books, { kind, delayMs }: Fault): Promise<Outcome> {
  const { heddle, nextNumber, seed } = books
  if (kind === 'pause') {
    heddle.process.kill('SIGSTOP')
    await sleep(PAUSE_MS)
    heddle.process.kill('SIGCONT')
    return 200
  }
  if (kind === 'poison') {
    const number = nextNumber()
    return write(books, 'poison', '/chaos/poison', { number }, { number, key: String(number), course: 'poison' })
  }
  return (await post(heddle, `/chaos/faults/${kind}`, { delay_ms: delayMs }, `chaos-${seed}-${nextNumber()}`)).outcome
}
