import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../support/random.ts'
import type { ChaosArguments } from '../arguments.ts'
import type { Owner } from '../process-guard.ts'
import { isSettled, readEvidence } from './evidence.ts'
import { GuardedService } from './guarded-service.ts'
import { type Kill, type KillKind, killsOf } from './kills.ts'
import { OrderBook, writeOrders } from './orders.ts'
import type { KillReport } from './report.ts'
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
  const { seed, seconds, lanes, kills } = options
  const service = await GuardedService.start(guard, lanes)
  const book = new OrderBook()
  const stop = new AbortController()
  guard.after(async () => stop.abort())
  const clients = Array.from({ length: CLIENTS }, (_, n) =>
    writeOrders(service, book, `key-${n}`, seededRandom(seed + 1 + n), stop.signal),
  )
  const startedMs = performance.now()
  const killed: KillKind[] = []
  for (const kill of killsOf(seededRandom(seed))) {
    await written(book, kill.afterWrites)
    if (killed.length >= kills || performance.now() > startedMs + seconds * 1000) break
    await sleep(kill.delayMs)
    await strike(service, kill)
    killed.push(kill.kind)
    await service.served()
  }
  stop.abort()
  await Promise.all(clients)

  const drainStartedMs = performance.now()
  while (!isSettled(service.databasePath) && performance.now() - drainStartedMs < SETTLE_MS) await sleep(LOOK_MS)
  const drainSeconds = (performance.now() - drainStartedMs) / 1000
  await service.stop()
  return {
    options,
    node: process.version,
    drainSeconds,
    killed,
    gaveUp: service.gaveUp,
    outcomes: book.outcomes(),
    longestGapMs: book.longestGapMs,
    faultsOfProcess: service.faults,
    verdict: judge({ asked: book.asked, ...readEvidence(service.databasePath) }),
  }
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
  if (kind === 'abort') await service.abort()
  else service.killRuntime()
  await service.replaced(before)
  if (kind !== 'boot') return
  await sleep(delayMs * BOOT_FACTOR)
  const booting = service.runtimePid()
  service.killRuntime()
  await service.replaced(booting)
}
