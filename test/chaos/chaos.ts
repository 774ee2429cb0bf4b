import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import { type Books, countEvents, writeUsers } from '../support/clients.ts'
import { type Heddle, startHeddle } from '../support/heddle.ts'
import { isAcknowledged, Ledger, type Subject } from '../support/ledger.ts'
import { seededRandom } from '../support/random.ts'
import { SHIPPED } from '../support/shipped-domains.ts'
import type { ChaosArguments } from './arguments.ts'
import { deathsOf } from './deaths.ts'
import { isIdle, peakMemoryMib, readDatabase, readDeadLetters } from './evidence.ts'
import { inflict } from './inflict.ts'
import type { ProcessGuard } from './process-guard.ts'
import type { Report } from './report.ts'
import { faultsOf } from './schedule.ts'
import { TraceWatch } from './trace-watch.ts'
import { type Evidence, judge } from './verdict.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./domains', import.meta.url))]
/** Hashing a password costs a tenth of a second of CPU: few clients sign up, or nobody else gets any. */
const USER_CLIENTS = 2
const USER_THINK_MS = 500
const COUNT_CLIENTS = 8
const COUNT_THINK_MS = 40

/** Bounds that are met often in a short time. */
const LIMITS = {
  LANE_STALL_MS: '1000',
  LANE_MEMORY_MB: '96',
  HTTP_HANDLER_TIMEOUT_MS: '5000',
  // All clients have one address.
  SIGNUP_MAX_PER_ADDRESS: '1000000',
}

/** Longer than the first sign-up takes on any machine. */
const FIRST_ANSWER_MS = 60_000
const SETTLE_LOOK_MS = 500
/** Nothing has changed for this long: what is open then stays open. Longer than the longest pause before a lane's restart. */
const SETTLE_STILL_MS = 90_000
const STOP_TIMEOUT_MS = 60_000
/** What the log says when something accepted was given up, or when evidence is gone. */
const ADMISSIONS = /are lost with this process|that waited for it are dropped|The dead-letter store is full/

/** Runs the service under faults while clients write, lets it settle, stops it, and judges what is left. */
export async function runChaos(options: ChaosArguments, guard: ProcessGuard): Promise<Report> {
  const { seed, seconds, lanes, gap } = options
  const heddle = await startHeddle(guard, { domains: DOMAINS, lanes, env: LIMITS })
  const traces = new TraceWatch(heddle)
  await traces.start()

  const faults = faultsOf(seededRandom(seed), seconds * 1000, gap * 1000)
  const startedMs = performance.now()
  const startedTimeMs = Date.now()
  const ledger = new Ledger(startedMs)
  let number = 0
  const books: Books = { heddle, ledger, seed, nextNumber: () => ++number }
  const inflicted = await load(books, () => inflict(books, faults, startedMs), startedMs + seconds * 1000)
  const longestGapMs = ledger.longestGapMs(performance.now())

  const drainStartedMs = performance.now()
  const deadLetters = await settle(heddle, ledger, traces)
  const drainSeconds = (performance.now() - drainStartedMs) / 1000

  const memoryMib = peakMemoryMib(heddle)
  const faultsOfProcess = await stop(heddle)
  await traces.stop()
  if (traces.gaps > 0) faultsOfProcess.push(`the stream of traces broke ${traces.gaps} times and left gaps`)
  for (const { msg } of heddle.logs) {
    if (ADMISSIONS.test(msg)) faultsOfProcess.push(`the log says: ${msg}`)
  }

  const { findings, users, events, trees } = judge(ledger.writes, evidenceOf(heddle, traces, deadLetters))
  return {
    options,
    node: process.version,
    drainSeconds,
    startedAt: new Date(startedTimeMs).toISOString(),
    faults: inflicted.map(({ timeMs, ...fault }) => ({ ...fault, atMs: timeMs - startedTimeMs })),
    deaths: deathsOf(heddle.logs).map(({ timeMs, ...death }) => ({ ...death, atMs: timeMs - startedTimeMs })),
    requests: ledger.countByOutcome(),
    users,
    events,
    trees,
    longestGapMs,
    p99Ms: { user: ledger.percentileMs('user', 0.99), count: ledger.percentileMs('count', 0.99) },
    peakMemoryMib: memoryMib,
    faultsOfProcess,
    findings,
  }
}

/** Clients write until the time is up, the last fault is over, and something of each kind is acknowledged. @returns what the faults return */
async function load<T>(books: Books, faults: () => Promise<T>, untilMs: number): Promise<T> {
  const stop = new AbortController()
  const randomOf = (client: number) => seededRandom(books.seed + 1 + client)
  const clients = [
    ...Array.from({ length: USER_CLIENTS }, (_, n) => writeUsers(books, randomOf(n), stop.signal, USER_THINK_MS)),
    ...Array.from({ length: COUNT_CLIENTS }, (_, n) =>
      countEvents(books, randomOf(USER_CLIENTS + n), stop.signal, COUNT_THINK_MS),
    ),
  ]
  const [outcome] = await Promise.all([faults(), sleep(Math.max(0, untilMs - performance.now()))])
  // A short run on a busy machine may be over before a single sign-up is.
  const isServed = (wanted: Subject) =>
    books.ledger.writes.some((each) => each.subject === wanted && isAcknowledged(each))
  while (!(isServed('user') && isServed('count')) && performance.now() < untilMs + FIRST_ANSWER_MS)
    await sleep(SETTLE_LOOK_MS)
  stop.abort()
  await Promise.all(clients)
  return outcome
}

/** Waits until nothing is open any more, or until nothing has changed for long. @returns the dead letters */
async function settle(heddle: Heddle, ledger: Ledger, traces: TraceWatch): Promise<DeadLetter[]> {
  let deadLetters: DeadLetter[] = []
  let seen = ''
  let changedMs = performance.now()
  while (!hasEnded(heddle)) {
    // Before the evidence is read: what ends afterwards shows as a change at the next look.
    const idle = await isIdle(heddle)
    deadLetters = await readDeadLetters(heddle)
    const evidence = evidenceOf(heddle, traces, deadLetters)
    const { findings } = judge(ledger.writes, evidence)
    const now = [findings.length, evidence.records.length, evidence.handled.size, deadLetters.length].join()
    if (idle && findings.length === 0 && now === seen) break
    if (now !== seen) changedMs = performance.now()
    else if (performance.now() - changedMs > SETTLE_STILL_MS) break
    seen = now
    await sleep(SETTLE_LOOK_MS)
  }
  return deadLetters
}

function evidenceOf(heddle: Heddle, traces: TraceWatch, deadLetters: readonly DeadLetter[]): Evidence {
  return { ...readDatabase(heddle), deadLetters, records: [...traces.records.values()] }
}

/** SIGTERM. @returns what was wrong about the end */
async function stop(heddle: Heddle): Promise<string[]> {
  const { process: child } = heddle
  if (hasEnded(heddle)) return [`the process ended by itself (${child.signalCode ?? `code ${child.exitCode}`})`]
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  const [code, signal] = await exited
  clearTimeout(killer)
  return code === 0 ? [] : [`the process ended with ${signal ?? `code ${code}`} after SIGTERM`]
}

function hasEnded({ process: { exitCode, signalCode } }: Heddle): boolean {
  return exitCode !== null || signalCode !== null
}
