import { setTimeout as sleep } from 'node:timers/promises'
import { type Books, post, write } from '../support/clients.ts'
import type { Outcome } from '../support/ledger.ts'
import type { Fault } from './schedule.ts'

/** How long the whole process stands still, milliseconds. */
const PAUSE_MS = 1000

/** A fault that was tried. */
export interface Inflicted extends Fault {
  /** Milliseconds since the epoch. */
  readonly timeMs: number
  /** 503: no lane was up, or the fault's plugin was set aside. */
  readonly outcome: Outcome
}

/** Makes the faults happen, each at its time; those of one moment overlap. Resolves when the last one is over. */
export async function inflict(books: Books, faults: readonly Fault[], startedMs: number): Promise<Inflicted[]> {
  const under: Promise<Inflicted>[] = []
  for (const fault of faults) {
    await sleep(Math.max(0, startedMs + fault.atMs - performance.now()))
    const timeMs = Date.now()
    under.push(strike(books, fault).then((outcome) => ({ ...fault, timeMs, outcome })))
  }
  return Promise.all(under)
}

async function strike(books: Books, { kind, delayMs }: Fault): Promise<Outcome> {
  const { heddle, nextNumber, seed } = books
  if (kind === 'pause') {
    heddle.process.kill('SIGSTOP')
    await sleep(PAUSE_MS)
    heddle.process.kill('SIGCONT')
    return 200
  }
  if (kind === 'reload') {
    heddle.process.kill('SIGHUP')
    return 200
  }
  if (kind === 'poison') {
    const number = nextNumber()
    return write(books, 'poison', '/chaos/poison', { number }, { number, key: String(number), course: 'poison' })
  }
  return (await post(heddle, `/chaos/faults/${kind}`, { delay_ms: delayMs }, `chaos-${seed}-${nextNumber()}`)).outcome
}
