// The slots of the lanes, and the states of the threads in them:
//
//   starting ──▶ ready ──▶ draining ──▶ dying ──▶ dead
//      │           └─────────────────────▲
//      ├──▶ draining    its boot has failed, or it is not needed any more
//      └──▶ dying       it has booted, and crashes before it serves
//
// A lane is dead once it is disposed of: a draining one has finished, its thread has ended abruptly or is stuck and given up (both are draining for a
// moment), or it is the quarantine lane after a handler that did not end. While the process stops a crash changes no state. The README of this folder says what each state means.

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

  /** Deaths within the window that ends now. */
  count(nowMs: number): number {
    return this.#recent(nowMs).length
  }

  /** @returns deaths within the window that ends now, this one included */
  add(nowMs: number): number {
    this.#deathsMs = [...this.#recent(nowMs), nowMs]
    return this.#deathsMs.length
  }

  #recent(nowMs: number): number[] {
    return this.#deathsMs.filter((atMs) => nowMs - atMs < this.#windowMs)
  }
}

/** Deaths in the window after which restarts pause. Source: restart intensity of Erlang/OTP supervisors. */
export const RESTART_INTENSITY = 5
export const RESTART_WINDOW_MS = 60_000
export const RESTART_MAX_PAUSE_MS = 30_000
/** Maximum pause before a restart while there is no other lane, milliseconds. */
export const LAST_LANE_MAX_PAUSE_MS = 500

/** Pause before a restart: none, unless lanes die often. */
export class RestartIntensity extends DeathWindow {
  constructor() {
    super(RESTART_WINDOW_MS)
  }

  /** True when the next restart has to wait. */
  isExceeded(nowMs: number): boolean {
    return this.count(nowMs) >= RESTART_INTENSITY
  }

  /** A thread has died. @returns the pause before its restart, milliseconds: doubled with each death beyond the intensity */
  recordDeath(nowMs: number): number {
    const surplus = this.add(nowMs) - RESTART_INTENSITY
    return surplus <= 0 ? 0 : Math.min(RESTART_MAX_PAUSE_MS, 1000 * 2 ** (surplus - 1))
  }
}

/** The states that `become` allows after each. */
const FOLLOWING: Readonly<Record<LaneState, readonly LaneState[]>> = {
  starting: ['ready', 'draining', 'dying'],
  ready: ['draining', 'dying'],
  draining: ['dying'],
  dying: [],
  dead: [],
}

/** One thread of a lane: in its slot, standing by, or about to take over. */
export class LaneThread extends Lane {
  readonly watchdog: Watchdog
  /** Ends the thread. */
  readonly abort = new AbortController()
  /** Processes and threads that its plugins have started. */
  readonly children: LaneChildren
  /** Its share of a core while it is starved; else null. */
  coreShare: number | null = null
  /** Files of the plugins that it was started without. */
  readonly without: ReadonlySet<string>
  /** File of the plugin that is being booted; null when none is. */
  bootingFile: string | null = null
  /** Files of all plugins that it has begun to boot. */
  readonly bootedFiles: string[] = []
  /** When it had booted; null before. By `steadyMs`. */
  bootedMs: number | null = null
  /** Resolves with the fault of the boot, or null when it succeeded. */
  readonly booted: Promise<string | null>
  bootEnded: (fault: string | null) => void = () => {}
  /** It is being replaced, because handlers that do not settle hold its places or its room for messages. */
  isWornOut = false
  /** The handler that has opened too many files there; null while none has. */
  holder: Holder | null = null
  /** What is known of its death; null while it lives. */
  box: BlackBox | null = null

  /** @param watched creates its watchdog */
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
    this.booted = new Promise((resolve) => {
      this.bootEnded = resolve
    })
  }

  /** @returns false where the current state does not allow it */
  become(state: LaneState): boolean {
    if (!FOLLOWING[this.state].includes(state)) return false
    this.state = state
    return true
  }

  /** It has crashed: another thread may take its place. */
  get isLost(): boolean {
    return this.state === 'dying' || this.state === 'dead'
  }
}

/** One lane's slot: threads come and go in it. */
export class LaneSlot {
  readonly index: number
  readonly role: LaneRole
  thread: LaneThread
  /** Starts or works beside a blocked thread until that one continues or has ended. */
  standby: LaneThread | null = null
  restarts = 0
  /** Newest first. */
  deaths: BlackBox[]
  /** Timer of the next restart. */
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
 * The slots of all lanes and the threads in them. Created empty, before the parts of the primary that need it; only the supervisor fills it.
 */
export class LaneSet implements Lanes {
  /** Regular lanes, once all have begun. */
  readonly wanted: number
  /** Of the regular lanes. */
  readonly slots: LaneSlot[] = []
  /** Handles events that crashed lanes, one at a time. */
  readonly quarantine: OnDemandLane
  /** Handles the requests of isolated plugins. */
  readonly probation: OnDemandLane
  readonly onDemand: readonly OnDemandLane[]
  /** Threads that are in no slot: about to take one over, or leaving. */
  readonly outside = new Set<LaneThread>()
  /** No thread starts any more. */
  isStopping = false
  /** Called when the threads or their states have changed. Set by the supervisor. */
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

  /** Lanes that take requests: those, and the probation lane. */
  get serving(): LaneThread[] {
    const thread = this.probation.slot?.thread
    return thread?.state === 'ready' ? [...this.ready, thread] : this.ready
  }

  /** The threads in the regular slots, whatever their state. */
  get regular(): LaneThread[] {
    return this.slots.map(({ thread }) => thread)
  }

  /** Every thread that runs, or is about to. */
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

  /** Regular lanes that boot. */
  get booting(): number {
    return this.slots.filter(({ thread }) => thread.state === 'starting').length
  }

  get isBootOver(): boolean {
    return this.missing <= 0 && this.booting === 0
  }

  /** True when every slot has a lane, and no standby boots. */
  get areUp(): boolean {
    return this.slots.every(({ thread, standby }) => thread.state === 'ready' && standby?.state !== 'starting')
  }

  /** True when no other lane serves or is about to. */
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
      if (standby?.state === 'ready') infos.push(infoOf(standby, slot, { role: 'relief', deaths: [] }))
    }
    for (const { slot, isIdle } of this.onDemand)
      if (slot !== null) infos.push(infoOf(slot.thread, slot, isIdle ? { state: 'idle' } : {}))
    return infos
  }
}

/** For its slot, a dying thread is gone. */
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

/** A lane on demand lets regular lanes boot first, for this long at most, milliseconds. */
const YIELD_MS = 3000
/** A lane on demand leaves when it has not been wanted for this long, milliseconds. */
const IDLE_MS = 10_000

/** A lane beside the regular ones for work that crashed lanes. It runs while it is wanted, and a little longer. */
export class OnDemandLane {
  readonly index: number
  readonly role: LaneRole
  /** Of its own: its deaths must not slow down the restarts of regular lanes. */
  readonly intensity = new RestartIntensity()
  /** Null until it has been wanted for the first time. */
  slot: LaneSlot | null = null
  isWanted = false
  /** When it was wanted, or not any more, by `steadyMs`. */
  #changedMs = 0
  /** Ends the thread after a handler in it was given up, so that nothing of it is left for the next event. Set by the supervisor. */
  renew: () => void = () => {}

  constructor(index: number, role: LaneRole) {
    this.index = index
    this.role = role
  }

  want(isWanted: boolean): void {
    if (this.isWanted !== isWanted) this.#changedMs = steadyMs()
    this.isWanted = isWanted
  }

  /** True while it does not run and is not wanted. */
  get isIdle(): boolean {
    return this.slot?.thread.isLost === true && !this.isWanted
  }

  /** True when it has not been wanted for so long that it leaves. */
  isOver(nowMs: number): boolean {
    return !this.isWanted && nowMs - this.#changedMs >= IDLE_MS
  }

  /** True when it may start beside lanes that boot. */
  isOverdue(nowMs: number): boolean {
    return nowMs - this.#changedMs >= YIELD_MS
  }
}
