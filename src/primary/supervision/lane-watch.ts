import type { Settings } from '../../core/config/schema.ts'
import { memoryLimits } from '../../transport/memory/heartbeat.ts'
import type { Lane } from '../dispatch/lane.ts'
import { type StackFrame, stackOf } from './stack-probe.ts'

/** How often the lanes' pulses are looked at, milliseconds. */
export const LOOK_MS = 20
/** A heartbeat that stands still this long: the lane gets no new work, and loses what it has not begun. */
const UNRESPONSIVE_MS = 50
/** A heartbeat that stands still this long: the stack of its thread is taken, before it is known whether it will go on. */
const PROBE_MS = 200
/** Such a stack is taken at most this often of one lane, milliseconds: to take it disturbs the thread for some. */
const PROBE_PAUSE_MS = 5_000
/** What one look adds to a standstill at most: a pause of the primary or of the machine says nothing about its lanes. */
export const LOOK_MAX_MS = 2 * LOOK_MS
/** The process may grow by this many times a lane's memory while that lane stands still. */
export const STANDSTILL_GROWTH = 2
/** The process may grow by this much more while a lane boots, MiB: for what all lanes load that boot beside it, and for itself. */
const BOOT_LANE_MB = 128
const BOOT_ROOM_MB = 1024
const MIB = 1 << 20

/** What a look at a lane says. */
export type Verdict = 'fine' | 'stalled' | 'memory'

export interface Standstill {
  stillMs: number
  /** Null when it could not be had. */
  stack: StackFrame[] | null
}

/** Watches one lane from the primary: its heartbeat, its memory, and where it stands when it stands still. */
export class LaneWatch {
  readonly #lane: Lane
  readonly #settings: Settings
  readonly #othersMemory: () => number
  readonly #isQuiet: () => boolean
  readonly #onRecovered: (standstill: Standstill) => void
  #seenBeats = -1
  /** How long the heartbeat has stood still while this thread was looking. */
  #stillMs = 0
  #probe: Promise<StackFrame[] | null> | null = null
  #lastStack: StackFrame[] | null = null
  #probedMs = 0
  #cpuBeforeMs: number | null = null
  #growthBefore: number | null = null
  readonly #memoryAtBirth: number | null

  /**
   * @param othersMemory bytes that all other threads use, by their own figures
   * @param isQuiet false while some thread is about to end: no stack is asked for then
   * @param onRecovered a lane that stood still goes on, and its stack was taken
   */
  constructor(
    lane: Lane,
    settings: Settings,
    othersMemory: () => number,
    isQuiet: () => boolean,
    onRecovered: (standstill: Standstill) => void,
  ) {
    this.#lane = lane
    this.#settings = settings
    this.#othersMemory = othersMemory
    this.#isQuiet = isQuiet
    this.#onRecovered = onRecovered
    this.#memoryAtBirth = this.#ownMemory()
  }

  get stillMs(): number {
    return this.#stillMs
  }

  /** Where it stood when its present standstill was young; null when it does not stand still, or that could not be had. */
  get lastStack(): StackFrame[] | null {
    return this.#lastStack
  }

  /** True when its loop turns. */
  get isTurning(): boolean {
    return this.#stillMs < UNRESPONSIVE_MS
  }

  /** CPU time of the thread since its loop stands still; null when it does not, or the system does not tell. */
  get cpuMsWhileStill(): number | null {
    const cpuMs = this.#lane.heartbeat.cpuMs
    return this.#cpuBeforeMs === null || cpuMs === null ? null : cpuMs - this.#cpuBeforeMs
  }

  /** @param sinceLookMs since the last look, however long ago that was */
  look(nowMs: number, sinceLookMs: number): Verdict {
    const { heartbeat } = this.#lane
    const { beats } = heartbeat
    if (beats !== this.#seenBeats) {
      this.#seenBeats = beats
      this.#goesOn()
      const { heapBytes, externalBytes } = memoryLimits(this.#settings.laneMemoryMb)
      return heartbeat.heapBytes > heapBytes || heartbeat.externalBytes > externalBytes ? 'memory' : 'fine'
    }
    const wasTurning = this.isTurning
    this.#stillMs += Math.min(sinceLookMs, LOOK_MAX_MS)
    if (this.isTurning) return 'fine'
    if (wasTurning) {
      this.#cpuBeforeMs = heartbeat.cpuMs
      this.#growthBefore = this.#ownMemory()
    }
    const isProbeDue = this.#stillMs >= PROBE_MS && this.#probe === null && nowMs - this.#probedMs > PROBE_PAUSE_MS
    if (isProbeDue && this.#isQuiet()) {
      this.#probedMs = nowMs
      const probe = stackOf(heartbeat.threadId, undefined, this.#isQuiet)
      this.#probe = probe
      void probe.then((stack) => {
        if (this.#probe === probe) this.#lastStack = stack
      })
    }
    if (this.#stillMs >= this.#settings.laneStallMs) return 'stalled'
    // Its own figures are of before: it has no turn to write them in.
    return this.#grownBytes() > STANDSTILL_GROWTH * this.#settings.laneMemoryMb * MIB ? 'memory' : 'fine'
  }

  /** While it boots it has no heartbeat that could be trusted. @returns what it takes too much of, in words, or null */
  bootFault(): string | null {
    const { lanes, laneMemoryMb } = this.#settings
    const limitMb = STANDSTILL_GROWTH * laneMemoryMb + BOOT_ROOM_MB + lanes * BOOT_LANE_MB
    const now = this.#ownMemory()
    if (now === null || this.#memoryAtBirth === null || now - this.#memoryAtBirth <= limitMb * MIB) return null
    return `the process grew by more than ${limitMb} MiB while it booted`
  }

  /** What the lane has grown by since it stands still; 0 when that cannot be told. */
  #grownBytes(): number {
    const now = this.#ownMemory()
    return now === null || this.#growthBefore === null ? 0 : now - this.#growthBefore
  }

  /** Where the thread stands now, or stood when it was last asked; null when it could not be had. */
  async stack(): Promise<StackFrame[] | null> {
    const { threadId } = this.#lane.heartbeat
    const earlier = this.#probe
    const isAsked = threadId !== 0 && !this.isTurning && this.#isQuiet()
    const now = isAsked ? await stackOf(threadId, undefined, this.#isQuiet) : null
    return now ?? (await earlier)
  }

  /** What of the process's memory is this lane's, as far as can be told from outside; null when the system does not tell. */
  #ownMemory(): number | null {
    try {
      return process.memoryUsage.rss() - this.#othersMemory()
    } catch {
      // No file descriptor is left to ask with.
      return null
    }
  }

  #goesOn(): void {
    const probe = this.#probe
    const stillMs = this.#stillMs
    this.#stillMs = 0
    this.#probe = null
    this.#lastStack = null
    this.#cpuBeforeMs = null
    if (probe !== null) void probe.then((stack) => this.#onRecovered({ stillMs, stack }))
  }
}
