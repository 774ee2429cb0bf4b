import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import type { Settings } from '../config/schema.ts'
import type { LaneInfo } from '../contracts/registry.ts'
import { messageOf } from '../errors/wire.ts'
import { Lane, type LaneListener } from './lane.ts'
import type { Exchange, LaneInit, SharedMemories, ToPrimary } from './messages.ts'

/** How often the lanes' pulses are looked at, milliseconds. */
const LOOK_MS = 20
/** A pulse that stands still this long: the lane gets no new work, and loses what it has not begun. */
const UNRESPONSIVE_MS = 50
/** What one look adds to a lane's standstill at most: a pause of the primary or of the machine says nothing about its lanes. */
const LOOK_MAX_MS = 2 * LOOK_MS
/** A lane that has not booted by then is given up. */
const BOOT_TIMEOUT_MS = 30_000

/** More deaths than this in the window: the supervisor pauses between restarts. Source: Erlang/OTP's supervisor, restart intensity. */
export const RESTART_INTENSITY = 5
export const RESTART_WINDOW_MS = 60_000
const RESTART_MAX_PAUSE_MS = 30_000

const WORKER_FILE = fileURLToPath(new URL('../../workers/lane.ts', import.meta.url))

export type DeathReason = 'stalled' | 'crashed' | 'boot'

export interface SupervisorOptions {
  settings: Settings
  shared: SharedMemories
  /** Everything that a lane says, but for its end. */
  listener: LaneListener
  /** A lane has reported what it hosts: give it its routes, and it is ready. */
  onBooted: (lane: Lane) => void
  /** The loop of a lane stands still: what it has not begun may go elsewhere. */
  onUnresponsive: (lane: Lane) => void
  /** A lane is gone, unasked. `orphans` are its requests without an answer. */
  onDeath: (lane: Lane, reason: DeathReason, message: string, orphans: Exchange[]) => void
  /** The set of lanes that take work has changed. */
  onChange: () => void
}

/** One lane's place: threads come and go in it. */
interface Berth {
  readonly index: number
  lane: Lane
  abort: AbortController
  restarts: number
  lastDeath: LaneInfo['last_death']
  seenBeats: number
  /** How long its pulse has stood still while this thread was looking. */
  stillMs: number
  isStalled: boolean
  /** Resolves when the thread has ended. */
  ended: Promise<void>
}

/** Keeps N lanes alive. Piscina owns the threads; each lane is the one long task of its thread. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #pool: Piscina
  readonly #berths: Berth[] = []
  #deathsMs: number[] = []
  #lookTimer: NodeJS.Timeout | undefined
  #lookedMs = Date.now()
  readonly #restartTimers = new Set<NodeJS.Timeout>()
  #isStopping = false

  constructor(options: SupervisorOptions) {
    const { settings } = options
    this.#options = options
    this.#pool = new Piscina({
      filename: WORKER_FILE,
      minThreads: settings.lanes,
      maxThreads: settings.lanes + 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // The default freezes a thread's timers and sockets while it has no task.
      atomics: 'disabled',
      recordTiming: false,
      resourceLimits: { maxOldGenerationSizeMb: settings.laneMemoryMb },
    })
    this.#pool.on('error', (error) => options.listener.onLog(null, logOf('ERROR', `Lane pool: ${messageOf(error)}`)))
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    for (let index = 0; index < this.#options.settings.lanes; index++) this.#berths.push(this.#spawn(index, 0, null))
    this.#lookTimer = setInterval(() => this.#look(), LOOK_MS)
  }

  /** Lanes that take work. */
  get ready(): Lane[] {
    return this.#berths.map(({ lane }) => lane).filter((lane) => lane.state === 'ready')
  }

  get all(): Lane[] {
    return this.#berths.map(({ lane }) => lane)
  }

  countByState(): Record<string, number> {
    const counts: Record<string, number> = { starting: 0, ready: 0, draining: 0, dead: 0 }
    for (const { lane } of this.#berths) counts[lane.state]!++
    return counts
  }

  info(): LaneInfo[] {
    return this.#berths.map(({ index, lane, restarts, lastDeath }) => ({
      index,
      state: lane.state,
      responsive: lane.responsive,
      requests_in_flight: lane.requestsInFlight,
      deliveries_in_flight: lane.deliveriesInFlight,
      loop_delay_ms: lane.pulse.loopDelayMs,
      heap_bytes: lane.pulse.heapBytes,
      started_at: new Date(lane.startedMs).toISOString(),
      restarts,
      last_death: lastDeath,
    }))
  }

  #spawn(index: number, restarts: number, lastDeath: LaneInfo['last_death']): Berth {
    const { settings, shared, listener } = this.#options
    const lane = new Lane(index, settings.laneMaxInflight, {
      ...listener,
      onMessage: (from, message) => this.#onMessage(from, message),
    })
    const abort = new AbortController()
    const { port, bulk, ...memory } = lane.threadSide
    const init: LaneInit = { index, settings, port, bulk, ...memory, shared }
    const berth: Berth = {
      index,
      lane,
      abort,
      restarts,
      lastDeath,
      seenBeats: -1,
      stillMs: 0,
      isStalled: false,
      ended: Promise.resolve(),
    }
    berth.ended = this.#pool.run(init, { signal: abort.signal, transferList: [port, bulk] }).then(
      () => this.#onEnd(berth, null),
      (error) => this.#onEnd(berth, error),
    )
    return berth
  }

  #onMessage(lane: Lane, message: ToPrimary): void {
    if (message.type === 'manifest') {
      lane.manifest = message.manifest
      this.#options.onBooted(lane)
      lane.state = 'ready'
      this.#options.onChange()
    } else if (message.type === 'boot-failed') {
      this.#options.listener.onLog(
        null,
        logOf('ERROR', `Lane ${lane.index} did not boot: ${message.message}`, { stack: message.stack }),
      )
    } else this.#options.listener.onMessage(lane, message)
  }

  #onEnd(berth: Berth, error: unknown): void {
    const { lane, index } = berth
    if (lane.state === 'dead') return
    const wasDraining = lane.state === 'draining'
    const hadBooted = lane.manifest !== null
    const routes = lane.inFlightRoutes()
    const orphans = lane.bury()
    if (wasDraining || this.#isStopping) {
      for (const exchange of orphans) exchange.fail('HTTP_INTERNAL')
      return
    }
    const reason: DeathReason = berth.isStalled ? 'stalled' : hadBooted ? 'crashed' : 'boot'
    const message = berth.isStalled
      ? `its loop stood still for ${this.#options.settings.laneStallMs} ms`
      : error === null
        ? 'its thread ended by itself'
        : messageOf(error)
    berth.lastDeath = { at: new Date().toISOString(), reason: message, in_flight: routes }
    this.#options.onDeath(lane, reason, message, orphans)
    this.#options.onChange()
    this.#restartLater(index, berth)
  }

  /** At once, unless lanes die so often that a pause is better for everybody else. */
  #restartLater(index: number, dead: Berth): void {
    const nowMs = Date.now()
    this.#deathsMs = [...this.#deathsMs.filter((atMs) => nowMs - atMs < RESTART_WINDOW_MS), nowMs]
    const surplus = this.#deathsMs.length - RESTART_INTENSITY
    const pauseMs = surplus <= 0 ? 0 : Math.min(RESTART_MAX_PAUSE_MS, 1000 * 2 ** (surplus - 1))
    if (pauseMs > 0) {
      this.#options.listener.onLog(
        null,
        logOf(
          'ERROR',
          `${this.#deathsMs.length} lanes died within ${RESTART_WINDOW_MS / 1000} s: the next start of lane ${index} waits ${pauseMs} ms`,
        ),
      )
    }
    const timer = setTimeout(() => {
      this.#restartTimers.delete(timer)
      if (this.#isStopping) return
      this.#berths[index] = this.#spawn(index, dead.restarts + 1, dead.lastDeath)
      this.#options.onChange()
    }, pauseMs)
    this.#restartTimers.add(timer)
  }

  #look(): void {
    const nowMs = Date.now()
    const sinceLookMs = Math.min(Math.max(0, nowMs - this.#lookedMs), LOOK_MAX_MS)
    this.#lookedMs = nowMs
    for (const berth of this.#berths) {
      const { lane } = berth
      if (lane.state === 'dead') continue
      lane.expire(nowMs)
      const beats = lane.pulse.beats
      if (beats !== berth.seenBeats) {
        berth.seenBeats = beats
        berth.stillMs = 0
        lane.responsive = true
        continue
      }
      // Plugins may load for as long as they like, up to the timeout: what counts begins when the lane is ready.
      if (lane.state === 'starting') {
        if (nowMs - lane.startedMs > BOOT_TIMEOUT_MS) berth.abort.abort()
        continue
      }
      berth.stillMs += sinceLookMs
      if (berth.stillMs >= UNRESPONSIVE_MS && lane.state === 'ready') {
        lane.responsive = false
        this.#options.onUnresponsive(lane)
      }
      if (berth.stillMs >= this.#options.settings.laneStallMs) {
        berth.isStalled = true
        berth.abort.abort()
      }
    }
  }

  /** Ends all lanes in order: each runs its `onStop` and closes its tools. Those that take too long are ended anyway. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#restartTimers) clearTimeout(timer)
    const timeout = setTimeout(() => {
      for (const { abort } of this.#berths) abort.abort()
    }, timeoutMs)
    for (const { lane, abort } of this.#berths) {
      if (lane.state === 'ready') {
        lane.state = 'draining'
        lane.post({ type: 'drain' })
      } else abort.abort()
    }
    await Promise.all(this.#berths.map(({ ended }) => ended))
    clearTimeout(timeout)
    clearInterval(this.#lookTimer)
    await this.#pool.destroy()
  }
}

function logOf(level: 'ERROR', message: string, fields?: Record<string, unknown>) {
  return { level, message, timestampMs: Date.now(), identity: 'supervisor', fields }
}
