/** Strikes while clients write, lets it settle, stops it, and judges what is left. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Owner } from '../support/heddle.ts'
import { seededRandom } from '../support/random.ts'
import { until } from '../support/until.ts'
import type { ChaosArguments } from './arguments.ts'
import { Caretaker } from './caretaker.ts'
import { type Kill, killsOf, type TroubleKind, troublesOf } from './faults.ts'
import type { GuardedService } from './guarded-service.ts'
import { OrderBook, type Outcome, type Poster, post, write, writeOrders } from './orders.ts'
import { isPassed, type Report } from './report.ts'
import { makeSite, type Site } from './site.ts'
import { TraceWatch } from './trace-watch.ts'
import { judge } from './verdict.ts'

const CLIENTS = 6
const LOOK_MS = 20
/** Longer than a plugin is set aside after its third death, and than any pause before another attempt. */
const SETTLE_MS = 120_000
/** A process that has not done its writes by then is killed all the same. */
const WRITES_MS = 10_000
/** A start takes this much longer than what a kill is else put off by. */
const BOOT_FACTOR = 30
/** How long the whole process stands still, milliseconds. */
const PAUSE_MS = 1000
/** What the log says when something accepted was given up, or when evidence is gone. */
const ADMISSIONS = /are lost with this process|waiting for it were dropped|The dead-letter store is full/

type Struck = Report['struck'][number]

export async function runChaos(options: ChaosArguments, guard: Owner): Promise<Report> {
  const { seed, killProcess } = options
  const site = await makeSite(guard, options)
  const { services, evidence } = site
  const turns = turnsOf(services)
  const caretaker = new Caretaker(turns, seededRandom(seed))
  const book = new OrderBook()
  const stop = new AbortController()
  guard.after(async () => stop.abort())
  const traces = killProcess ? null : new TraceWatch(services[0]!)
  await traces?.start()
  const clients = Array.from({ length: CLIENTS }, (_, n) =>
    writeOrders(turns, book, `key-${n}`, seededRandom(seed + 1 + n), stop.signal),
  )
  const caring = caretaker.work(stop.signal)
  const struck = await (killProcess ? killProcesses(site, book, options) : troubleLanes(services[0]!, book, options))
  stop.abort()
  await Promise.all([...clients, caring])

  const drainStartedMs = performance.now()
  const isSettled = async () => (await caretaker.look()) === 0 && (await evidence.isSettled())
  while (!(await isSettled()) && performance.now() - drainStartedMs < SETTLE_MS) await sleep(LOOK_MS)
  const drainSeconds = (performance.now() - drainStartedMs) / 1000
  const left = await evidence.read()
  await traces?.told(left.handled.map(({ event_id }) => event_id))
  const letters = (await caretaker.letters()).map(({ event_id: id, error }) => ({ id, error }))
  for (const service of services) await service.stop()
  await traces?.stop()
  const told = services.flatMap(({ logs }) => logs.flat())
  const deleted = [...caretaker.deleted]
  const report = {
    options,
    node: process.version,
    drainSeconds,
    struck,
    lanesDied: told.filter(({ identity, msg }) => identity === 'supervisor' && /^Lane \S+ died/.test(msg)).length,
    gaveUp: services.reduce((sum, { gaveUp }) => sum + gaveUp, 0),
    outcomes: book.outcomes(),
    longestGapMs: book.longestGapMs,
    faultsOfProcess: [
      ...services.flatMap(({ faults }) => faults),
      ...told.flatMap(({ msg }) => (ADMISSIONS.test(msg) ? [`the log says: ${msg}`] : [])),
      ...(traces !== null && traces.gaps > 0 ? [`the stream of traces has ${traces.gaps} gaps`] : []),
    ],
    healed: caretaker.healed,
    verdict: judge({ asked: book.asked, letters, deleted, records: traces?.records ?? null, ...left }),
  }
  return { ...report, keptLog: isPassed(report) ? null : keep(told, seed) }
}

/** @returns where the lines lie: a fault that needs luck is seldom seen twice */
function keep(lines: readonly object[], seed: number): string {
  const path = join(tmpdir(), `heddle-chaos-${seed}-${process.pid}.log`)
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return path
}

/** One request goes to one service, the next to another. */
function turnsOf(services: readonly GuardedService[]): Poster {
  let turn = 0
  return { fetch: (path, init) => services[turn++ % services.length]!.fetch(path, init) }
}

/** Waits until so many more writes are acknowledged, for a while. */
async function written(book: OrderBook, writes: number): Promise<void> {
  const wanted = book.acknowledged + writes
  const untilMs = performance.now() + WRITES_MS
  while (book.acknowledged < wanted && performance.now() < untilMs) await sleep(LOOK_MS)
}

/** Ends processes one after another, each when it has done something. */
async function killProcesses(site: Site, book: OrderBook, options: ChaosArguments): Promise<Struck[]> {
  const { services } = site
  const untilMs = performance.now() + options.seconds * 1000
  const struck: Struck[] = []
  for (const kill of killsOf(seededRandom(options.seed), options.log)) {
    const service = services[struck.length % services.length]!
    await written(book, kill.afterWrites)
    if (struck.length >= options.kills || performance.now() > untilMs) break
    await sleep(kill.delayMs)
    if (kill.kind === 'server') await site.restartServer()
    else await strike(service, kill)
    struck.push({ kind: kill.kind, outcome: 200 })
    await service.served()
  }
  return struck
}

async function strike(service: GuardedService, { kind, delayMs }: Kill): Promise<void> {
  const before = service.runtimePid()
  if (kind === 'plug' || kind === 'guardian') return service.killGuardian(kind === 'plug')
  if (kind === 'stop') return service.restart()
  if (kind === 'lane') return service.abort('exit')
  if (kind === 'abort') await service.abort('abort')
  else service.killRuntime()
  await service.replaced(before)
  if (kind !== 'boot') return
  await sleep(delayMs * BOOT_FACTOR)
  const booting = service.runtimePid()
  service.killRuntime()
  await service.replaced(booting)
}

/** Lanes die, and their process goes on. Those of one moment overlap. */
async function troubleLanes(service: GuardedService, book: OrderBook, options: ChaosArguments): Promise<Struck[]> {
  const runtime = service.runtimePid()
  const untilMs = performance.now() + options.seconds * 1000
  const under: Promise<Struck>[] = []
  // The first one meets clients that are at work.
  await until(() => book.acknowledged > 0, 'a write', SETTLE_MS)
  for (const { kind, pauseMs } of troublesOf(seededRandom(options.seed), options.gap * 1000)) {
    await sleep(pauseMs)
    if (performance.now() > untilMs) break
    under.push(trouble(service, book, kind).then((outcome) => ({ kind, outcome })))
  }
  const struck = await Promise.all(under)
  if (service.runtimePid() !== runtime) service.faults.push('the process ended by itself')
  return struck
}

/** @returns 503: no lane was up, or the plugin of the fault was set aside */
async function trouble(service: GuardedService, book: OrderBook, kind: TroubleKind): Promise<Outcome> {
  const runtime = service.runtimePid()!
  if (kind === 'poison') return (await write(service, book, 'poison', 'poison')).outcome
  if (kind === 'pause') {
    process.kill(runtime, 'SIGSTOP')
    await sleep(PAUSE_MS)
    process.kill(runtime, 'SIGCONT')
  } else if (kind === 'reload') process.kill(runtime, 'SIGHUP')
  else return (await post(service, `/${kind}`, {}, `chaos-${kind}`)).outcome
  return 200
}
