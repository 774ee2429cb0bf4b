import type { BlackBox, LaneInfo } from '../../contracts/registry.ts'
import type { Settings } from '../../core/config/schema.ts'
import type { LaneTracing, Manifest, SharedMemories } from '../../transport/messages.ts'
import type { Estate, Lane, LaneListener, LaneRole } from '../dispatch/lane.ts'
import { infoOf } from './lane-info.ts'
import { Succession } from './lane-replacement.ts'
import { LaneStarter } from './lane-starter.ts'
import { type Berth, type Death, deathOf, emptyPlace, type Place } from './lane-thread.ts'
import type { Standstill } from './lane-watch.ts'
import { QuarantineLane } from './quarantine-lane.ts'
import { RESTART_WINDOW_MS, RestartIntensity } from './restart-intensity.ts'
import { Renewal } from './rolling-reload.ts'
import { Relief } from './standby-lane.ts'
import { Lookout } from './watchdog.ts'

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
  onLeft: (lane: Lane, estate: Estate) => void
  /** The set of lanes that take work has changed. */
  onChange: () => void
}

/** Keeps N lanes alive: starts them, watches them, replaces them when they die or their code is new. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #starter: LaneStarter
  readonly #places: Place[] = []
  readonly #succession: Succession
  readonly #renewal: Renewal
  readonly #relief: Relief
  readonly #quarantine: QuarantineLane
  readonly #lookout: Lookout
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
      onEnd: (berth, error) => this.#onEnd(berth, error),
      log: (message, fields) => this.#log(message, fields),
    })
    const onLeaving = (lane: Lane): void => {
      options.onLeaving(lane)
      options.onChange()
    }
    this.#succession = new Succession({
      settings: options.settings,
      spawn: ({ index, role }) => this.#starter.start(index, role),
      open: (lane) => this.#open(lane),
      onLeaving,
      isBusy: options.isBusy,
      isStopping: () => this.#isStopping,
    })
    this.#renewal = new Renewal({
      places: this.#places,
      succession: this.#succession,
      beginGeneration: () => this.#starter.beginGeneration(),
      refusalOf: options.refusalOf,
      isStopping: () => this.#isStopping,
      onFault: options.listener.onFault,
    })
    this.#relief = new Relief({
      laneStallMs: options.settings.laneStallMs,
      places: this.#places,
      succession: this.#succession,
      isPaused: (nowMs) => this.#intensity.isExceeded(nowMs),
      open: (lane) => this.#open(lane),
      restart: (place) => this.#restartLater(place),
      isStopping: () => this.#isStopping,
    })
    this.#quarantine = new QuarantineLane({
      settle: () => this.#settle(options.settings.lanes, 'quarantine'),
      restart: (place) => this.#restart(place),
      retire: (berth) => this.#succession.retire(berth),
      onLeaving: options.onLeaving,
    })
    this.#lookout = new Lookout({
      berths: () => this.#berths(),
      onStill: (berth) => this.#tendStill(berth),
      onTurning: (berth) => this.#relief.end(berth),
      onFault: (lane, error) => options.listener.onFault(lane, error),
    })
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    for (let index = 0; index < this.#options.settings.lanes; index++) this.#places.push(this.#settle(index, 'regular'))
    this.#lookout.start()
  }

  /** Lanes that take work. */
  get ready(): Lane[] {
    return this.#berths()
      .map(({ lane }) => lane)
      .filter(({ role, state }) => role === 'regular' && state === 'ready')
  }

  /** The lanes that are in their places, whatever their state; without the quarantine lane. */
  get regular(): Lane[] {
    return this.#places.map(({ berth }) => berth.lane)
  }

  /** Every lane whose thread runs, or is about to. */
  get all(): Lane[] {
    return this.#berths().map(({ lane }) => lane)
  }

  /** False while a lane is on its way up for the first time, or once more without a plugin that brought it down. */
  get isSettled(): boolean {
    return this.#places.every(({ isRetried, berth }) => !isRetried && berth.lane.state !== 'starting')
  }

  countByState(): Record<string, number> {
    const counts: Record<string, number> = { starting: 0, ready: 0, draining: 0, dead: 0 }
    for (const { state } of this.regular) counts[state]!++
    return counts
  }

  info(): LaneInfo[] {
    const infos: LaneInfo[] = []
    const { place: quarantine, isWanted } = this.#quarantine
    for (const place of quarantine === null ? this.#places : [...this.#places, quarantine]) {
      const { role, berth, relief } = place
      const isIdle = role === 'quarantine' && berth.lane.state === 'dead' && !isWanted
      infos.push(infoOf(berth.lane, place, isIdle ? { state: 'idle' } : {}))
      if (relief !== null) infos.push(infoOf(relief.lane, place, { role: 'relief', deaths: [] }))
    }
    return infos
  }

  #berths(): Berth[] {
    const berths = new Set(this.#places.flatMap(({ berth, relief }) => (relief === null ? [berth] : [berth, relief])))
    if (this.#quarantine.place !== null) berths.add(this.#quarantine.place.berth)
    for (const berth of this.#succession.others) berths.add(berth)
    return [...berths]
  }

  // ── start ─────────────────────────────────────────────────────────────────

  #settle(index: number, role: LaneRole): Place {
    return { ...emptyPlace(index, role), berth: this.#starter.start(index, role) }
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
  #tendStill(berth: Berth): void {
    berth.lane.collect()
    this.#options.onUnresponsive(berth.lane)
    this.#relief.tend(berth)
  }

  #onEnd(berth: Berth, error: unknown): void {
    const { lane } = berth
    if (lane.state === 'dead') return
    const wasTold = berth.abort.signal.aborted && berth.verdict === 'fine' && !lane.flight.hasLastWords
    lane.responsive = false
    lane.hasEnded = true
    if (!this.#isStopping) this.#options.onUnresponsive(lane)
    const estate = lane.bury()
    this.#succession.others.delete(berth)
    const place = lane.role === 'quarantine' ? this.#quarantine.place! : this.#places[lane.index]!
    if (place.relief === berth) place.relief = null
    if (wasTold || this.#isStopping) {
      this.#guarded(lane, () => this.#options.onLeft(lane, estate))
      berth.arrived?.('it was ended')
      // It was leaving when it was wanted again.
      if (place.berth === berth && this.#quarantine.isWanted) this.#restart(place)
      return
    }
    const death = deathOf(berth, error, estate, this.#options.settings.laneMemoryMb)
    berth.deathMessage = death.message
    const box = this.#guarded(lane, () => this.#options.onDeath(lane, death))
    if (box !== undefined) place.deaths = [box, ...place.deaths].slice(0, DEATHS_KEPT)
    berth.arrived?.(death.message)
    if (place.berth === berth && place.relief !== null) this.#relief.inherit(place)
    if (place.berth === berth && !place.isRelieving) {
      place.isRetried = berth.booting !== null
      if (berth.booting !== null) this.#starter.bar(berth, death, box?.guilty?.line)
      this.#restartLater(place)
    } else this.#intensity.note(Date.now())
    this.#options.onChange()
  }

  /** Whatever the rest of the primary makes of a lane's end: its place is filled again. */
  #guarded<T>(lane: Lane, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      this.#options.listener.onFault(lane, error)
      return undefined
    }
  }

  #restartLater(place: Place): void {
    const isQuarantine = place.role === 'quarantine'
    if (isQuarantine && !this.#quarantine.isWanted) return
    const intensity = isQuarantine ? this.#quarantine.intensity : this.#intensity
    const pauseMs = intensity.note(Date.now())
    if (pauseMs > 0) {
      this.#log(
        `${intensity.recent} lanes died within ${RESTART_WINDOW_MS / 1000} s: the next start of lane ${place.index} waits ${pauseMs} ms`,
      )
    }
    place.timer = setTimeout(() => {
      place.timer = undefined
      this.#restart(place)
    }, pauseMs)
  }

  /** Unless a reload was faster. */
  #restart(place: Place): void {
    if (this.#isStopping || place.berth.lane.state !== 'dead') return
    place.restarts++
    place.isRetried = false
    place.berth = this.#starter.start(place.index, place.role)
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
    await (this.#options.isHasty ? this.#renewal.together() : this.#renewal.inTurn())
    this.#quarantine.retire()
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Ends all lanes in order: each runs its `onStop` and closes its tools. Those that take too long are ended anyway. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true
    for (const { timer } of this.#places) clearTimeout(timer)
    this.#quarantine.stop()
    const berths = this.#berths()
    const timeout = setTimeout(() => {
      for (const { abort } of berths) abort.abort()
    }, timeoutMs)
    for (const { lane, abort } of berths) {
      if (lane.state === 'ready') {
        lane.state = 'draining'
        lane.post({ type: 'drain' })
      } else if (lane.state !== 'draining') abort.abort()
    }
    await Promise.all(berths.map(({ ended }) => ended))
    clearTimeout(timeout)
    this.#lookout.stop()
    await this.#starter.destroy()
  }
}
