import { setTimeout as sleep } from 'node:timers/promises'
import type { Poster } from '../../support/clients.ts'
import { seededRandom } from '../../support/random.ts'
import type { ChaosArguments } from '../arguments.ts'
import type { Owner } from '../process-guard.ts'
import { Caretaker } from './caretaker.ts'
import type { GuardedService } from './guarded-service.ts'
import { KILLS, type Kill, type KillKind, killsOf } from './kills.ts'
import { OrderBook, writeOrders } from './orders.ts'
import type { KillReport } from './report.ts'
import { makeSite } from './site.ts'
import { judge } from './verdict.ts'

const CLIENTS = 6
const LOOK_MS = 20
/** Longer than a plugin is set aside after its third death, and than any pause before another attempt. */
const SETTLE_MS = 120_000
/** A process that has not done its writes by then is killed all the same. */
const WRITES_MS = 10_000
/** A start takes this much longer than what a kill is else put off by. */
const BOOT_FACTOR = 30

/** Kills the whole process again and again while clients write, lets it settle, stops it, and judges what is left. */
export async function killProcess(options: ChaosArguments, guard: Owner): Promise<KillReport> {
  const { seed, seconds, kills, log } = options
  const site = await makeSite(guard, options)
  const { services, evidence } = site
  const turns = turnsOf(services)
  const caretaker = new Caretaker(turns, seededRandom(seed))
  const book = new OrderBook()
  const stop = new AbortController()
  guard.after(async () => stop.abort())
  const clients = Array.from({ length: CLIENTS }, (_, n) =>
    writeOrders(turns, book, `key-${n}`, seededRandom(seed + 1 + n), stop.signal),
  )
  const caring = caretaker.work(stop.signal)
  const startedMs = performance.now()
  const killed: KillKind[] = []
  for (const kill of killsOf(seededRandom(seed), KILLS[log])) {
    const service = services[killed.length % services.length]!
    await written(book, kill.afterWrites)
    if (killed.length >= kills || performance.now() > startedMs + seconds * 1000) break
    await sleep(kill.delayMs)
    if (kill.kind === 'server') await site.restartServer()
    else await strike(service, kill)
    killed.push(kill.kind)
    await service.served()
  }
  stop.abort()
  await Promise.all([...clients, caring])

  const drainStartedMs = performance.now()
  const isSettled = async () => (await caretaker.look()) === 0 && (await evidence.isSettled())
  while (!(await isSettled()) && performance.now() - drainStartedMs < SETTLE_MS) await sleep(LOOK_MS)
  const drainSeconds = (performance.now() - drainStartedMs) / 1000
  const letters = (await caretaker.letters()).map(({ event_id: id, error }) => ({ id, error }))
  for (const service of services) await service.stop()
  return {
    options,
    node: process.version,
    drainSeconds,
    killed,
    gaveUp: services.reduce((sum, { gaveUp }) => sum + gaveUp, 0),
    outcomes: book.outcomes(),
    longestGapMs: book.longestGapMs,
    faultsOfProcess: services.flatMap(({ faults }) => faults),
    healed: caretaker.healed,
    verdict: judge({ asked: book.asked, letters, deleted: [...caretaker.deleted], ...(await evidence.read()) }),
  }
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
