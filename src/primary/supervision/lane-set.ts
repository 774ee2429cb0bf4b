// The slots of lanes, the threads in them, and what is shown of them.

import type { BlackBox, LaneInfo } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { Holder } from '../../transport/messages.ts'
import { Lane, type LaneOptions, type LaneRole, type LaneState, type Lanes } from '../dispatch/lane.ts'
import type { LaneChildren } from './lane-children.ts'
import type { Watchdog } from './watchdog.ts'

/** Counts deaths within a sliding window of time. */
export class DeathWindow {
  readonly #windowMs: number
  #deathsMs: number[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Deaths within the window that ended with the last one. */
  get size(): number {
    return this.#deathsMs.length
  }

  /** Deaths within the window that ends now. */
  count(nowMs: number): number {
    return this.#recent(nowMs).length
  }

  add(nowMs: number): void {
    this.#deathsMs = [...this.#recent(nowMs), nowMs]
  }

  clear(): void {
    this.#deathsMs = []
  }

  #recent(nowMs: number): number[] {
    return this.#deathsMs.filter((atMs) => nowMs - atMs < this.#windowMs)
  }
}

/** With more deaths than this in the window the supervisor pauses between restarts. Source: Erlang/OTP's supervisor, restart intensity. */
export const RESTART_INTENSITY = 5
export const RESTART_WINDOW_MS = 60_000
export const RESTART_MAX_PAUSE_MS = 30_000
/** The restart of a lane waits no longer than this while there is no other lane. */
export const LAST_LANE_MAX_PAUSE_MS = 500

/** How long a restart waits. There is no pause unless threads die so often that one is better for all the others. */
export class RestartIntensity extends DeathWindow {
  constructor() {
    super(RESTART_WINDOW_MS)
  }

  /** True when a further restart would have to wait. */
  isExceeded(nowMs: number): boolean {
    return this.count(nowMs) >= RESTART_INTENSITY
  }

  /** A thread has died. @returns the pause before its restart, milliseconds: doubled with each death beyond the intensity */
  recordDeath(nowMs: number): number {
    this.add(nowMs)
    const surplus = this.size - RESTART_INTENSITY
    return surplus <= 0 ? 0 : Math.min(RESTART_MAX_PAUSE_MS, 1000 * 2 ** (surplus - 1))
  }
}

/** What may become of a thread. It is dead as soon as its lane is disposed of, whatever it was. */
const FOLLOWING: Readonly<Record<LaneState, readonly LaneState[]>> = {
  starting: ['ready', 'draining', 'dying'],
  ready: ['draining', 'dying'],
  draining: ['dying'],
  dying: [],
  dead: [],
}

/** One thread of a lane as its keeper knows it: in its slot, standing by, or about to take over. */
export class LaneThread extends Lane {
  readonly watchdog: Watchdog
  /** Ends the thread. */
  readonly abort = new AbortController()
  /** Processes and threads that its plugins have started. */
  readonly children: LaneChildren
  /** Share of a core that it got lately while it was starved; null while it is not. */
  coreShare: number | null = null
  /** Files of the plugins that it was started without. */
  readonly without: ReadonlySet<string>
  /** File of the plugin that is being booted; null when none is. */
  bootingFile: string | null = null
  /** Files of all plugins that it has begun to boot. */
  readonly bootedFiles: string[] = []
  /** When it had booted; null before. By `steadyMs`. */
  bootedMs: number | null = null
  /** Told how the boot has ended: null, or why it failed. Null while nothing waits for that. */
  onBootEnd: ((fault: string | null) => void) | null = null
  /** It is about to be replaced: handlers that do not settle hold its places, or its room for messages of WebSockets. */
  isWornOut = false
  /** Who has opened so many files there that it is ended; null while nobody has. */
  holder: Holder | null = null
  /** What is known of its death; null while it lives. */
  box: BlackBox | null = null
  /** Why it died, or dies; null while it lives, and when it was told to end. */
  deathMessage: string | null = null
  /** Resolves when the thread has ended. */
  ended: Promise<void> = Promise.resolve()

  /** @param watched makes what watches it */
  constructor(
    options: LaneOptions,
    without: ReadonlySet<string>,
    children: LaneChildren,
    watched: (thread: LaneThread) => Watchdog,
  ) {
    super(options)
    this.without = without
    this.children = children
    this.watchdog = watched(this)
  }

  /** @returns false where it is too late for that */
  become(state: LaneState): boolean {
    if (!FOLLOWING[this.state].includes(state)) return false
    this.state = state
    return true
  }

  /** It has died, or is dying: another thread may take its place. */
  get isLost(): boolean {
    return this.state === 'dying' || this.state === 'dead'
  }
}

/** One lane's slot: threads come and go in it. */
export class LaneSlot {
  readonly index: number
  readonly role: LaneRole
  thread: LaneThread
  /** Works beside a thread that stands still, until that one goes on or has ended. */
  standby: LaneThread | null = null
  isStandbyStarting = false
  restarts = 0
  /** Newest first. */
  deaths: BlackBox[]
  /** Its thread died in a plugin's boot, and is about to be started without that plugin. */
  isRetried = false
  /** Timer of the restart that is due. */
  restartTimer: NodeJS.Timeout | undefined

  /** @param deaths of threads before this one */
  constructor(thread: LaneThread, deaths: BlackBox[] = []) {
    this.index = thread.index
    this.role = thread.role
    this.thread = thread
    this.deaths = deaths
  }
}

/**
 * The slots of all lanes, the threads in them, and what there is to say of these. Made before the parts of the primary that ask for lanes, and empty;
 * the supervisor alone fills it.
 */
export class LaneSet implements Lanes {
  /** Regular lanes, once all have begun. */
  readonly wanted: number
  /** Of the regular lanes. */
  readonly slots: LaneSlot[] = []
  /** For events that lanes died of, one at a time. */
  readonly quarantine: OnDemandLane
  /** For the requests of plugins that may have ended lanes. */
  readonly probation: OnDemandLane
  readonly onDemand: readonly OnDemandLane[]
  /** Threads that are in no slot: about to take over, or leaving. */
  readonly outside = new Set<LaneThread>()
  /** No thread starts any more. */
  isStopping = false
  /** The threads in the slots have changed, or which of them take work. The supervisor sets it. */
  changed: () => void = () => {}

  constructor(wanted: number) {
    this.wanted = wanted
    this.quarantine = new OnDemandLane(wanted, 'quarantine')
    this.probation = new OnDemandLane(wanted + 1, 'probation')
    this.onDemand = [this.quarantine, this.probation]
  }

  /** Lanes that take work. */
  get ready(): LaneThread[] {
    return this.all.filter(({ role, state }) => role === 'regular' && state === 'ready')
  }

  /** Lanes that take requests: those, and the one that takes what may have ended lanes. */
  get serving(): LaneThread[] {
    const thread = this.probation.slot?.thread
    return thread?.state === 'ready' ? [...this.ready, thread] : this.ready
  }

  /** The lanes that are in their slots, whatever their state; without those on demand. */
  get regular(): LaneThread[] {
    return this.slots.map(({ thread }) => thread)
  }

  /** Every lane whose thread runs, or is about to. */
  get all(): LaneThread[] {
    const threads = new Set<LaneThread>()
    for (const { thread, standby } of this.slots) {
      threads.add(thread)
      if (standby !== null) threads.add(standby)
    }
    for (const { slot } of this.onDemand) if (slot !== null) threads.add(slot.thread)
    for (const thread of this.outside) threads.add(thread)
    return [...threads]
  }

  /** The lane on demand of this role; null for a regular lane. */
  onDemandOf(role: LaneRole): OnDemandLane | null {
    return this.onDemand.find((each) => each.role === role) ?? null
  }

  slotOf({ role, index }: Lane): LaneSlot {
    return this.onDemandOf(role)?.slot ?? this.slots[index]!
  }

  /** Regular lanes that have not begun. */
  get missing(): number {
    return this.wanted - this.slots.length
  }

  /** Lanes that boot for the first time, or once more without a plugin that brought them down. */
  get booting(): number {
    return this.slots.filter(({ isRetried, thread }) => isRetried || thread.state === 'starting').length
  }

  get isBootOver(): boolean {
    return this.missing <= 0 && this.booting === 0
  }

  /** True when no other lane serves or is about to: what works must not wait for what has brought the others down. */
  isLast(slot: LaneSlot): boolean {
    if (this.missing > 0) return false
    return this.slots.every(({ index, thread }) => index === slot.index || thread.isLost)
  }

  countByState(): Record<string, number> {
    const counts: Record<string, number> = { starting: 0, ready: 0, draining: 0, dead: 0 }
    for (const { thread } of this.slots) counts[stateOf(thread)]!++
    return counts
  }

  info(): LaneInfo[] {
    const infos: LaneInfo[] = []
    for (const slot of this.slots) {
      const { thread, standby } = slot
      infos.push(infoOf(thread, slot, {}))
      if (standby !== null) infos.push(infoOf(standby, slot, { role: 'relief', deaths: [] }))
    }
    for (const { slot, isIdle } of this.onDemand)
      if (slot !== null) infos.push(infoOf(slot.thread, slot, isIdle ? { state: 'idle' } : {}))
    return infos
  }
}

/** What a thread still finishes is no matter of its place. */
const stateOf = ({ state }: LaneThread): LaneInfo['state'] => (state === 'dying' ? 'dead' : state)

/** A lane as `/system/lanes` shows it. @param changes fields that differ for this lane */
function infoOf(thread: LaneThread, { index, role, restarts, deaths }: LaneSlot, changes: Partial<LaneInfo>): LaneInfo {
  const { children, heartbeat } = thread
  const isRunning = thread.state !== 'dead' && changes.state !== 'idle'
  const hasReported = isRunning && heartbeat.hasReported
  return {
    index,
    role,
    state: stateOf(thread),
    responsive: thread.responsive,
    requests_in_flight: thread.requestsInFlight + thread.requests.streams,
    deliveries_in_flight: thread.deliveriesInFlight,
    sockets_open: thread.sockets.size,
    loop_delay_ms: isRunning ? heartbeat.loopDelayMs : null,
    heap_bytes: hasReported ? heartbeat.heapBytes : null,
    external_bytes: hasReported ? heartbeat.externalBytes : null,
    cpu_ms: heartbeat.cpuMs,
    starved_core_share: thread.coreShare,
    child_processes: children.shown((plugin) => thread.manifest?.files[plugin]),
    threads: children.threads(),
    started_at: new Date(thread.startedMs).toISOString(),
    restarts,
    deaths,
    ...changes,
  }
}

/** It ends when it has not been wanted for this long. */
const IDLE_MS = 10_000

/** A lane beside the regular ones, for work that may have ended lanes. It runs while it is wanted, and a little longer: the supervisor looks. */
export class OnDemandLane {
  readonly index: number
  readonly role: LaneRole
  /** Counted apart from the other lanes: what kills every lane it is tried in must not slow down their restarts. */
  readonly intensity = new RestartIntensity()
  /** Null until it has been wanted for the first time. */
  slot: LaneSlot | null = null
  isWanted = false
  /** It has been up since it is wanted. */
  hasBegun = false
  #unwantedMs = 0
  /** Ends the thread because a handler in it was given up: nothing of it must be left for what comes next. The supervisor sets it. */
  renew: () => void = () => {}

  constructor(index: number, role: LaneRole) {
    this.index = index
    this.role = role
  }

  want(isWanted: boolean): void {
    if (this.isWanted && !isWanted) this.#unwantedMs = steadyMs()
    if (!isWanted) this.hasBegun = false
    this.isWanted = isWanted
  }

  /** True while it does not run because nothing needs it. */
  get isIdle(): boolean {
    return this.slot?.thread.isLost === true && !this.isWanted
  }

  /** It has not been wanted for so long that it ends, when it has finished what it has. */
  isOver(nowMs: number): boolean {
    return !this.isWanted && nowMs - this.#unwantedMs >= IDLE_MS
  }
}
