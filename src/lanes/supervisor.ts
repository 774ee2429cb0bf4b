import { getHeapStatistics } from 'node:v8'
import type { Settings } from '../config/schema.ts'
import type { BlackBox, LaneInfo } from '../contracts/registry.ts'
import { messageOf } from '../errors/wire.ts'
import { type Berth, BOOT_TIMEOUT_MS, type Death, deathOf, type Place } from './berth.ts'
import { type Estate, Lane, type LaneListener, type LaneRole } from './lane.ts'
import { LanePool } from './lane-pool.ts'
import { LaneWatch, LOOK_MAX_MS, LOOK_MS, type Standstill } from './lane-watch.ts'
import { LANE_PROTOCOL, type LaneInit, type Manifest, type SharedMemories, type ToPrimary } from './messages.ts'
import { RESTART_WINDOW_MS, RestartIntensity } from './restart-intensity.ts'
import { Succession } from './succession.ts'

/** A lane that has stood still this long gets a successor, before it is known whether it will go on; or at half its time, when that is less. */
const RELIEF_MS = 1000
/** Black boxes that are kept of each lane. */
const DEATHS_KEPT = 5
/** The quarantine lane ends when nobody has wanted it for this long. */
const QUARANTINE_IDLE_MS = 10_000

export interface SupervisorOptions {
  settings: Settings
  shared: SharedMemories
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
  readonly #pool: LanePool
  readonly #places: Place[] = []
  readonly #succession: Succession
  readonly #intensity = new RestartIntensity()
  /** A plugin that computes for seconds again and again must not start a thread each time. */
  readonly #reliefIntensity = new RestartIntensity()
  /** Of its own: an event that kills every lane it is tried in must not slow down the others' restarts. */
  readonly #quarantineIntensity = new RestartIntensity()
  /** Plugins that are not booted any more, by file, each with the reason. */
  #barred: Record<string, string> = {}
  #quarantine: Place | null = null
  #isQuarantineWanted = false
  #quarantineTimer: NodeJS.Timeout | undefined
  #generation = 0
  #lookTimer: NodeJS.Timeout | undefined
  #lookedMs = Date.now()
  #isStopping = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#succession = new Succession({
      settings: options.settings,
      spawn: ({ index, role }) => this.#spawn(index, role),
      open: (lane) => this.#open(lane),
      onLeaving: (lane) => {
        options.onLeaving(lane)
        options.onChange()
      },
      isBusy: options.isBusy,
      isStopping: () => this.#isStopping,
    })
    this.#pool = new LanePool(options.settings, (error) => this.#log(`Lane pool: ${messageOf(error)}`))
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    for (let index = 0; index < this.#options.settings.lanes; index++) this.#places.push(this.#settle(index, 'regular'))
    this.#lookTimer = setInterval(() => this.#look(), LOOK_MS)
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
    for (const place of this.#quarantine === null ? this.#places : [...this.#places, this.#quarantine]) {
      const { role, berth, relief } = place
      const isIdle = role === 'quarantine' && berth.lane.state === 'dead' && !this.#isQuarantineWanted
      infos.push(infoOf(berth.lane, place, isIdle ? { state: 'idle' } : {}))
      if (relief !== null) infos.push(infoOf(relief.lane, place, { role: 'relief', deaths: [] }))
    }
    return infos
  }

  #berths(): Berth[] {
    const berths = new Set(this.#places.flatMap(({ berth, relief }) => (relief === null ? [berth] : [berth, relief])))
    if (this.#quarantine !== null) berths.add(this.#quarantine.berth)
    for (const berth of this.#succession.others) berths.add(berth)
    return [...berths]
  }

  // ── start ─────────────────────────────────────────────────────────────────

  #settle(index: number, role: LaneRole): Place {
    return {
      index,
      role,
      restarts: 0,
      deaths: [],
      isRetried: false,
      isRelieving: false,
      relief: null,
      timer: undefined,
      berth: this.#spawn(index, role),
    }
  }

  #spawn(index: number, role: LaneRole): Berth {
    const { settings, shared, listener } = this.#options
    const lane: Lane = new Lane(index, role, this.#generation, settings.laneMaxInflight, {
      ...listener,
      onMessage: (_, message) => this.#onMessage(berth, message),
    })
    const abort = new AbortController()
    const { port, bulk, ...memory } = lane.threadSide
    const init: LaneInit = {
      protocol: LANE_PROTOCOL,
      index,
      settings,
      port,
      bulk,
      ...memory,
      shared,
      barred: this.#barred,
    }
    const berth: Berth = {
      lane,
      watch: new LaneWatch(
        lane,
        settings,
        () => this.#memoryBeside(lane),
        (standstill) => this.#options.onRecovered(lane, standstill),
      ),
      abort,
      verdict: 'fine',
      stack: null,
      cpuMs: null,
      cpuMsWhileStill: null,
      booting: null,
      bootedFiles: [],
      bootStillMs: 0,
      deathMessage: null,
      bootFault: null,
      arrived: null,
      ended: Promise.resolve(),
    }
    berth.ended = this.#pool.run(init, [port, bulk], abort.signal).then(
      () => this.#onEnd(berth, null),
      (error) => this.#onEnd(berth, error),
    )
    return berth
  }

  /** What all threads but one say that they use, bytes. */
  #memoryBeside(lane: Lane): number {
    const { total_heap_size, external_memory } = getHeapStatistics()
    let bytes = total_heap_size + external_memory
    for (const other of this.all) if (other !== lane) bytes += other.pulse.heapBytes + other.pulse.externalBytes
    return bytes
  }

  #onMessage(berth: Berth, message: ToPrimary): void {
    const { lane } = berth
    switch (message.type) {
      case 'booting':
        berth.booting = message.file
        berth.bootedFiles.push(message.file)
        berth.bootStillMs = 0
        return
      case 'manifest':
        berth.booting = null
        lane.manifest = message.manifest
        if (berth.arrived === null) this.#open(lane)
        else berth.arrived(null)
        return
      case 'boot-failed':
        berth.bootFault = message.message
        return this.#log(`Lane ${lane.index} did not boot: ${message.message}`, { stack: message.stack })
      case 'drained':
        // Ended, not returned to the pool: the next lane must load its code anew.
        return berth.abort.abort()
      default:
        this.#options.listener.onMessage(lane, message)
    }
  }

  #open(lane: Lane): void {
    // It died with these as its last words, or was told to leave meanwhile.
    if (lane.state !== 'starting') return
    this.#options.onBooted(lane)
    lane.state = 'ready'
    if (lane.role === 'quarantine' && !this.#isQuarantineWanted) this.#restQuarantineLater()
    this.#options.onChange()
  }

  // ── death ─────────────────────────────────────────────────────────────────

  #look(): void {
    const nowMs = Date.now()
    const sinceLookMs = Math.max(0, nowMs - this.#lookedMs)
    this.#lookedMs = nowMs
    for (const berth of this.#berths()) {
      try {
        this.#lookAt(berth, nowMs, sinceLookMs)
      } catch (error) {
        this.#options.listener.onFault(berth.lane, error)
      }
    }
  }

  #lookAt(berth: Berth, nowMs: number, sinceLookMs: number): void {
    const { lane, watch } = berth
    if (lane.state === 'dead' || berth.verdict !== 'fine') return
    lane.expire(nowMs)
    // Its code runs no more, but the thread may wait for native work to end.
    if (lane.flight.hasLastWords) berth.abort.abort()
    if (lane.state === 'starting') {
      berth.bootStillMs += Math.min(sinceLookMs, LOOK_MAX_MS)
      if (berth.bootStillMs > BOOT_TIMEOUT_MS) void this.#condemn(berth, 'boot')
      return
    }
    const verdict = watch.look(nowMs, sinceLookMs)
    lane.responsive = watch.isTurning
    if (!watch.isTurning) this.#tendStill(berth)
    else this.#endRelief(berth)
    if (verdict !== 'fine') void this.#condemn(berth, verdict)
  }

  /** What it has written is read, though it cannot ring; what it has not begun goes elsewhere; another thread helps out in time. */
  #tendStill(berth: Berth): void {
    const { lane, watch } = berth
    lane.collect()
    this.#options.onUnresponsive(lane)
    if (watch.stillMs >= Math.min(RELIEF_MS, this.#options.settings.laneStallMs / 2)) void this.#relieve(berth)
  }

  /** The others shall not carry its share until it is known whether it will go on: a further thread does, and inherits its place should it end. */
  async #relieve(still: Berth): Promise<void> {
    const place = this.#places.find(({ berth }) => berth === still)
    if (place === undefined || place.isRelieving || place.relief !== null || this.#isStopping) return
    const nowMs = Date.now()
    if (this.#intensity.isExceeded(nowMs) || this.#reliefIntensity.isExceeded(nowMs)) return
    this.#reliefIntensity.note(nowMs)
    place.isRelieving = true
    const { fresh, fault } = await this.#succession.call(place)
    place.isRelieving = false
    const isNeeded = place.berth === still && !(still.lane.state === 'ready' && still.watch.isTurning)
    if (fault !== null || !isNeeded || this.#isStopping) {
      this.#succession.dismiss(fresh)
      if (place.berth.lane.state === 'dead') this.#restartLater(place)
      return
    }
    this.#succession.others.delete(fresh)
    place.relief = fresh
    if (still.lane.state === 'dead') this.#inherit(place)
    this.#open(fresh.lane)
  }

  /** The thread that helped out stays. */
  #inherit(place: Place): void {
    place.berth = place.relief!
    place.relief = null
    place.restarts++
  }

  /** The thread that stood still goes on: whoever helped out finishes what it has. */
  #endRelief(berth: Berth): void {
    const place = this.#places.find((each) => each.berth === berth)
    const relief = place?.relief
    if (!place || !relief || relief.lane.state === 'dead') return
    place.relief = null
    void this.#succession.retire(relief)
  }

  /** Asks where it stands, then ends it. */
  async #condemn(berth: Berth, verdict: Berth['verdict']): Promise<void> {
    berth.verdict = verdict
    berth.cpuMsWhileStill = berth.watch.cpuMsWhileStill
    berth.stack = await berth.watch.stack()
    berth.cpuMs = berth.lane.pulse.cpuMs
    berth.abort.abort()
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
    const place = lane.role === 'quarantine' ? this.#quarantine! : this.#places[lane.index]!
    if (place.relief === berth) place.relief = null
    if (wasTold || this.#isStopping) {
      this.#guarded(lane, () => this.#options.onLeft(lane, estate))
      berth.arrived?.('it was ended')
      // It was leaving when it was wanted again.
      if (place.berth === berth && this.#isQuarantineWanted) this.#restart(place)
      return
    }
    const death = deathOf(berth, error, estate, this.#options.settings.laneMemoryMb)
    berth.deathMessage = death.message
    const box = this.#guarded(lane, () => this.#options.onDeath(lane, death))
    if (box !== undefined) place.deaths = [box, ...place.deaths].slice(0, DEATHS_KEPT)
    berth.arrived?.(death.message)
    if (place.berth === berth && place.relief !== null) this.#inherit(place)
    if (place.berth === berth && !place.isRelieving) {
      place.isRetried = berth.booting !== null
      if (berth.booting !== null) this.#bar(berth, death, box?.guilty?.line)
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

  /** A plugin brought a lane down while it booted: the one that the stack names, else the one whose turn it was. Without it, the lane comes up. */
  #bar({ booting, bootedFiles }: Berth, { stack, message }: Death, line: string | null | undefined): void {
    const named = stack.find(({ file }) => bootedFiles.includes(file))?.file
    const reason = `It brought down a lane while it booted: ${message}${line ? ` (${line})` : ''}`
    this.#barred = { ...this.#barred, [named ?? booting!]: reason }
  }

  #restartLater(place: Place): void {
    const isQuarantine = place.role === 'quarantine'
    if (isQuarantine && !this.#isQuarantineWanted) return
    const intensity = isQuarantine ? this.#quarantineIntensity : this.#intensity
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
    place.berth = this.#spawn(place.index, place.role)
    this.#options.onChange()
  }

  #log(message: string, fields?: Record<string, unknown>): void {
    const record = { level: 'ERROR' as const, message, timestampMs: Date.now(), identity: 'supervisor' }
    this.#options.listener.onLog(null, fields === undefined ? record : { ...record, fields })
  }

  // ── quarantine ────────────────────────────────────────────────────────────

  /** While it is wanted there is one lane more, for events that lanes died of. */
  wantQuarantine(isWanted: boolean): void {
    this.#isQuarantineWanted = isWanted
    clearTimeout(this.#quarantineTimer)
    if (this.#isStopping) return
    const place = this.#quarantine
    if (!isWanted) this.#restQuarantineLater()
    else if (place === null) this.#quarantine = this.#settle(this.#options.settings.lanes, 'quarantine')
    else if (place.timer === undefined) this.#restart(place)
  }

  #restQuarantineLater(): void {
    clearTimeout(this.#quarantineTimer)
    this.#quarantineTimer = setTimeout(() => {
      const berth = this.#quarantine?.berth
      if (berth?.lane.state === 'ready' && !this.#isQuarantineWanted) void this.#succession.retire(berth)
    }, QUARANTINE_IDLE_MS).unref()
  }

  /** A handler in the quarantine lane was given up: what comes next must find nothing of it. When it has ended it starts anew, if it is wanted. */
  renewQuarantine(): void {
    const berth = this.#quarantine?.berth
    if (berth === undefined || berth.lane.state === 'dead') return
    berth.lane.state = 'draining'
    this.#options.onLeaving(berth.lane)
    berth.abort.abort()
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /**
   * Replaces all lanes by new threads that load the code anew, one by one; each old one finishes what it has.
   * @throws when a new lane does not boot, or boots with less than the old ones: those that have not been replaced stay
   */
  async reload(): Promise<void> {
    this.#generation++
    const barred = this.#barred
    this.#barred = {}
    for (const place of this.#places) {
      if (this.#isStopping) throw new Error('the service is stopping')
      const { fresh, ...arrival } = await this.#succession.call(place)
      const fault = arrival.fault ?? this.#options.refusalOf(fresh.lane.manifest!)
      if (fault !== null || this.#isStopping) {
        this.#barred = barred
        this.#succession.dismiss(fresh)
        const taken = place.index === 0 ? '' : ` (lanes before ${place.index} have the new code)`
        throw new Error(`${fault ?? 'the service is stopping'}${taken}`)
      }
      await this.#succession.takeOver(place, fresh)
    }
    // It finishes its suspect, and has the new code when it is wanted again.
    const quarantine = this.#quarantine?.berth
    if (quarantine?.lane.state === 'ready') void this.#succession.retire(quarantine)
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Ends all lanes in order: each runs its `onStop` and closes its tools. Those that take too long are ended anyway. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true
    for (const { timer } of this.#places) clearTimeout(timer)
    clearTimeout(this.#quarantine?.timer)
    clearTimeout(this.#quarantineTimer)
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
    clearInterval(this.#lookTimer)
    await this.#pool.destroy()
  }
}

function infoOf(lane: Lane, { index, role, restarts, deaths }: Place, more: Partial<LaneInfo>): LaneInfo {
  return {
    index,
    role,
    state: lane.state,
    responsive: lane.responsive,
    requests_in_flight: lane.requestsInFlight,
    deliveries_in_flight: lane.deliveriesInFlight,
    loop_delay_ms: lane.pulse.loopDelayMs,
    heap_bytes: lane.pulse.heapBytes,
    external_bytes: lane.pulse.externalBytes,
    cpu_ms: lane.pulse.cpuMs,
    started_at: new Date(lane.startedMs).toISOString(),
    restarts,
    deaths,
    ...more,
  }
}
