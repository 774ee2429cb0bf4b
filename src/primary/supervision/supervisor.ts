import type { BlackBox, LaneInfo } from '../../contracts/registry.ts'
import type { Settings } from '../../core/config/schema.ts'
import type { Manifest, SharedMemories } from '../../transport/messages.ts'
import type { Lane, LaneListener, LaneRole, UnfinishedWork } from '../dispatch/lane.ts'
import { infoOf } from './lane-info.ts'
import { LaneReplacement } from './lane-replacement.ts'
import { LaneStarter, type LaneTracing } from './lane-starter.ts'
import { type Death, deathOf, emptySlot, type LaneSlot, type LaneThread } from './lane-thread.ts'
import type { Standstill } from './lane-watch.ts'
import { QuarantineLane } from './quarantine-lane.ts'
import { RESTART_WINDOW_MS, RestartIntensity } from './restart-intensity.ts'
import { RollingReload } from './rolling-reload.ts'
import { StandbyLane } from './standby-lane.ts'
import { Watchdog } from './watchdog.ts'

/** Black boxes that are kept of each lane. */
const DEATHS_KEPT = 5

export interface SupervisorOptions {
  settings: Settings
  shared: SharedMemories
  /** Somebody waits for each change of the code: new lanes are up sooner, and take over together. */
  isHasty: boolean
  /** Null while tracing is off. */
  tracing: () => LaneTracing | null
  /** Everything that a lane says, but for its end. */
  listener: LaneListener
  /** A lane has reported what it hosts: give it its routes, and it is ready. */
  onBooted: (lane: Lane) => void
  /** What speaks against new code, by what its first lane hosts; null when nothing does. */
  refusalOf: (manifest: Manifest) => string | null
  /** The loop of a lane stands still, or the lane is gone: what it has not begun may go elsewhere. */
  onUnresponsive: (lane: Lane) => void
  /** The loop of a lane turns again after it stood still for so long that its stack was taken. */
  onRecovered: (lane: Lane, standstill: Standstill) => void
  /** A lane is gone, unasked. @returns what is kept of it */
  onDeath: (lane: Lane, death: Death) => BlackBox
  /** A lane gets no new work, and ends as soon as it has none. */
  onLeaving: (lane: Lane) => void
  /** True while a lane that is leaving has work that only the primary knows of. */
  isBusy: (lane: Lane) => boolean
  /** A lane has ended because it was told to. */
  onLeft: (lane: Lane, unfinished: UnfinishedWork) => void
  /** The set of lanes that take work has changed. */
  onChange: () => void
}

/** Keeps N lanes alive: starts them, watches them, replaces them when they die or their code is new. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #starter: LaneStarter
  readonly #slots: LaneSlot[] = []
  readonly #replacement: LaneReplacement
  readonly #rollingReload: RollingReload
  readonly #standby: StandbyLane
  readonly #quarantine: QuarantineLane
  readonly #watchdog: Watchdog
  readonly #intensity = new RestartIntensity()
  #isStopping = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#starter = new LaneStarter({
      settings: options.settings,
      shared: options.shared,
      isWarm: options.isHasty,
      tracing: options.tracing,
      listener: options.listener,
      all: () => this.all,
      open: (lane) => this.#open(lane),
      onRecovered: options.onRecovered,
      onEnd: (thread, error) => this.#onEnd(thread, error),
      log: (message, fields) => this.#log(message, fields),
    })
    const onLeaving = (lane: Lane): void => {
      options.onLeaving(lane)
      options.onChange()
    }
    this.#replacement = new LaneReplacement({
      settings: options.settings,
      spawn: ({ index, role }) => this.#starter.start(index, role),
      open: (lane) => this.#open(lane),
      onLeaving,
      isBusy: options.isBusy,
      isStopping: () => this.#isStopping,
    })
    this.#rollingReload = new RollingReload({
      slots: this.#slots,
      replacement: this.#replacement,
      beginGeneration: () => this.#starter.beginGeneration(),
      refusalOf: options.refusalOf,
      isStopping: () => this.#isStopping,
      onFault: options.listener.onFault,
    })
    this.#standby = new StandbyLane({
      laneStallMs: options.settings.laneStallMs,
      slots: this.#slots,
      replacement: this.#replacement,
      isPaused: (nowMs) => this.#intensity.isExceeded(nowMs),
      open: (lane) => this.#open(lane),
      restart: (slot) => this.#restartLater(slot),
      isStopping: () => this.#isStopping,
    })
    this.#quarantine = new QuarantineLane({
      fillSlot: () => this.#fillSlot(options.settings.lanes, 'quarantine'),
      restart: (slot) => this.#restart(slot),
      retire: (thread) => this.#replacement.retire(thread),
      onLeaving: options.onLeaving,
    })
    this.#watchdog = new Watchdog({
      threads: () => this.#threads(),
      onStill: (thread) => this.#tendStill(thread),
      onTurning: (thread) => this.#standby.end(thread),
      onFault: (lane, error) => options.listener.onFault(lane, error),
    })
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    for (let index = 0; index < this.#options.settings.lanes; index++)
      this.#slots.push(this.#fillSlot(index, 'regular'))
    this.#watchdog.start()
  }

  /** Lanes that take work. */
  get ready(): Lane[] {
    return this.#threads()
      .map(({ lane }) => lane)
      .filter(({ role, state }) => role === 'regular' && state === 'ready')
  }

  /** The lanes that are in their slots, whatever their state; without the quarantine lane. */
  get regular(): Lane[] {
    return this.#slots.map(({ thread }) => thread.lane)
  }

  /** Every lane whose thread runs, or is about to. */
  get all(): Lane[] {
    return this.#threads().map(({ lane }) => lane)
  }

  /** False while a lane is on its way up for the first time, or once more without a plugin that brought it down. */
  get isSettled(): boolean {
    return this.#slots.every(({ isRetried, thread }) => !isRetried && thread.lane.state !== 'starting')
  }

  countByState(): Record<string, number> {
    const counts: Record<string, number> = { starting: 0, ready: 0, draining: 0, dead: 0 }
    for (const { state } of this.regular) counts[state]!++
    return counts
  }

  info(): LaneInfo[] {
    const infos: LaneInfo[] = []
    const { slot: quarantine, isWanted } = this.#quarantine
    for (const slot of quarantine === null ? this.#slots : [...this.#slots, quarantine]) {
      const { role, thread, standby } = slot
      const isIdle = role === 'quarantine' && thread.lane.state === 'dead' && !isWanted
      infos.push(infoOf(thread.lane, slot, isIdle ? { state: 'idle' } : {}))
      if (standby !== null) infos.push(infoOf(standby.lane, slot, { role: 'relief', deaths: [] }))
    }
    return infos
  }

  #threads(): LaneThread[] {
    const threads = new Set(
      this.#slots.flatMap(({ thread, standby }) => (standby === null ? [thread] : [thread, standby])),
    )
    if (this.#quarantine.slot !== null) threads.add(this.#quarantine.slot.thread)
    for (const thread of this.#replacement.others) threads.add(thread)
    return [...threads]
  }

  // ── start ─────────────────────────────────────────────────────────────────

  #fillSlot(index: number, role: LaneRole): LaneSlot {
    return { ...emptySlot(index, role), thread: this.#starter.start(index, role) }
  }

  #open(lane: Lane): void {
    // It died with these as its last words, or was told to leave meanwhile.
    if (lane.state !== 'starting') return
    this.#options.onBooted(lane)
    lane.state = 'ready'
    if (lane.role === 'quarantine') this.#quarantine.opened()
    this.#options.onChange()
  }

  // ── death ─────────────────────────────────────────────────────────────────

  /** What it has written is read, though it cannot ring; what it has not begun goes elsewhere; another thread helps out in time. */
  #tendStill(thread: LaneThread): void {
    thread.lane.collect()
    this.#options.onUnresponsive(thread.lane)
    this.#standby.tend(thread)
  }

  #onEnd(thread: LaneThread, error: unknown): void {
    const { lane } = thread
    if (lane.state === 'dead') return
    const wasTold = thread.abort.signal.aborted && thread.verdict === 'fine' && !lane.flight.hasExitReport
    lane.responsive = false
    lane.hasEnded = true
    if (!this.#isStopping) this.#options.onUnresponsive(lane)
    const unfinished = lane.dispose()
    this.#replacement.others.delete(thread)
    const slot = lane.role === 'quarantine' ? this.#quarantine.slot! : this.#slots[lane.index]!
    if (slot.standby === thread) slot.standby = null
    if (wasTold || this.#isStopping) {
      this.#guarded(lane, () => this.#options.onLeft(lane, unfinished))
      thread.arrived?.('it was ended')
      // It was leaving when it was wanted again.
      if (slot.thread === thread && this.#quarantine.isWanted) this.#restart(slot)
      return
    }
    const death = deathOf(thread, error, unfinished, this.#options.settings.laneMemoryMb)
    thread.deathMessage = death.message
    const box = this.#guarded(lane, () => this.#options.onDeath(lane, death))
    if (box !== undefined) slot.deaths = [box, ...slot.deaths].slice(0, DEATHS_KEPT)
    thread.arrived?.(death.message)
    if (slot.thread === thread && slot.standby !== null) this.#standby.inherit(slot)
    if (slot.thread === thread && !slot.isStandbyStarting) {
      slot.isRetried = thread.booting !== null
      if (thread.booting !== null) this.#starter.bar(thread, death, box?.guilty?.line)
      this.#restartLater(slot)
    } else this.#intensity.note(Date.now())
    this.#options.onChange()
  }

  /** Whatever the rest of the primary makes of a lane's end: its slot is filled again. */
  #guarded<T>(lane: Lane, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      this.#options.listener.onFault(lane, error)
      return undefined
    }
  }

  #restartLater(slot: LaneSlot): void {
    const isQuarantine = slot.role === 'quarantine'
    if (isQuarantine && !this.#quarantine.isWanted) return
    const intensity = isQuarantine ? this.#quarantine.intensity : this.#intensity
    const pauseMs = intensity.note(Date.now())
    if (pauseMs > 0) {
      this.#log(
        `${intensity.recent} lanes died within ${RESTART_WINDOW_MS / 1000} s: the next start of lane ${slot.index} waits ${pauseMs} ms`,
      )
    }
    slot.timer = setTimeout(() => {
      slot.timer = undefined
      this.#restart(slot)
    }, pauseMs)
  }

  /** Unless a reload was faster. */
  #restart(slot: LaneSlot): void {
    if (this.#isStopping || slot.thread.lane.state !== 'dead') return
    slot.restarts++
    slot.isRetried = false
    slot.thread = this.#starter.start(slot.index, slot.role)
    this.#options.onChange()
  }

  #log(message: string, fields?: Record<string, unknown>): void {
    const record = { level: 'ERROR' as const, message, timestampMs: Date.now(), identity: 'supervisor' }
    this.#options.listener.onLog(null, fields === undefined ? record : { ...record, fields })
  }

  // ── quarantine ────────────────────────────────────────────────────────────

  /** While it is wanted there is one lane more, for events that lanes died of. */
  wantQuarantine(isWanted: boolean): void {
    if (!this.#isStopping) this.#quarantine.want(isWanted)
  }

  /** A handler in the quarantine lane was given up: what comes next must find nothing of it. */
  renewQuarantine(): void {
    this.#quarantine.renew()
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /**
   * Replaces all lanes by new threads that load the code anew; each old one finishes what it has.
   * @throws when a new lane does not boot, or boots with less than the old ones: those that have not been replaced stay
   */
  async reload(): Promise<void> {
    await (this.#options.isHasty ? this.#rollingReload.together() : this.#rollingReload.inTurn())
    this.#quarantine.retire()
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Ends all lanes in order: each runs its `onStop` and closes its tools. Those that take too long are ended anyway. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true
    for (const { timer } of this.#slots) clearTimeout(timer)
    this.#quarantine.stop()
    const threads = this.#threads()
    const timeout = setTimeout(() => {
      for (const { abort } of threads) abort.abort()
    }, timeoutMs)
    for (const { lane, abort } of threads) {
      if (lane.state === 'ready') {
        lane.state = 'draining'
        lane.post({ type: 'drain' })
      } else if (lane.state !== 'draining') abort.abort()
    }
    await Promise.all(threads.map(({ ended }) => ended))
    clearTimeout(timeout)
    this.#watchdog.stop()
    await this.#starter.destroy()
  }
}
