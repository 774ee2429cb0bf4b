// How a lane shows that its loop turns, and how much memory it has.
import { getHeapStatistics } from 'node:v8'
import { threadId } from 'node:worker_threads'
import { tellOwnWork } from '../../core/schedule/own-work.ts'
import { ownTask, type ThreadTimes, timesOf } from '../../core/schedule/thread-clock.cjs'
import { collectGarbage, readyToCollect } from './garbage.ts'
import { SharedWords } from './words.ts'

// Taken before plugins can replace them.
const { add, load, store } = Atomics

/**
 * Heartbeat of one lane (written by the lane, read by the primary):
 *
 *   word 0  BEATS         counts up every LANE_BEAT_MS while the lane's loop turns
 *   word 1  LOOP_DELAY    longest delay of that timer in the last second, microseconds
 *   word 2  HEAP_KIB      used JavaScript heap
 *   word 3  EXTERNAL_KIB  memory that belongs to JavaScript objects outside of the heap: buffers above all, shared ones that it has made, too
 *   word 4  THREAD        `threadId` of worker_threads; 0 until it has begun
 *   word 5  TASK          the thread's number in the operating system (Linux), 0 elsewhere
 *   word 6  OWN_WORK      1 while the runtime parses, checks or writes what a client wants
 *   word 7  TURN          while plugins boot, the number of the one whose code has its turn, or had the last one; 0 for the runtime's own
 *   word 8  PLUGIN_TURN   the same, but the last one of a plugin
 *   word 9  ASKED         1 from when the primary asks a boot for its stack until the next plugin boots: no turn is noted
 */
const HEARTBEAT_BEATS_WORD = 0
const HEARTBEAT_LOOP_DELAY_US_WORD = 1
const HEARTBEAT_HEAP_KIB_WORD = 2
const HEARTBEAT_EXTERNAL_KIB_WORD = 3
const HEARTBEAT_THREAD_WORD = 4
const HEARTBEAT_TASK_WORD = 5
const HEARTBEAT_OWN_WORK_WORD = 6
const HEARTBEAT_TURN_WORD = 7
const HEARTBEAT_PLUGIN_TURN_WORD = 8
const HEARTBEAT_ASKED_WORD = 9
const HEARTBEAT_BYTES = 64

/** How often a lane shows that its loop turns, milliseconds. */
export const LANE_BEAT_MS = 20

const BEATS_PER_REPORT = 1000 / LANE_BEAT_MS
/** Memory is measured more often than once a second: a lane that fills up does so fast. */
const BEATS_PER_MEMORY_REPORT = 5

/**
 * Size of V8's young generation: objects that live as long as a request or a publication must fit, or they are copied again and again.
 * Measured with events over streams, against the default: a seventh less CPU per event. A lane takes only as much of it as it needs.
 */
export const YOUNG_GENERATION_MB = 64

export function createHeartbeat(): SharedArrayBuffer {
  return new SharedArrayBuffer(HEARTBEAT_BYTES)
}

export interface MemoryLimits {
  readonly heapBytes: number
  readonly externalBytes: number
}

/** Memory that LANE_MEMORY_MB allows a lane: this much heap beside its young generation, and as much again for buffers. */
export const memoryLimits = (laneMemoryMb: number): MemoryLimits => ({
  heapBytes: (laneMemoryMb + YOUNG_GENERATION_MB) * 2 ** 20,
  externalBytes: laneMemoryMb * 2 ** 20,
})

/** Bytes of memory that threads share. */
interface SharedCount {
  readonly bytes: number
  /** Counts again what is no garbage. */
  look(): void
}

/** The lane's side: beats while the thread's loop turns. */
export class HeartbeatWriter {
  readonly #words: Int32Array
  readonly #limits: MemoryLimits
  readonly #shared: SharedCount
  #lastBeatMs = performance.now()
  #longestDelayMs = 0
  #beats = 0

  /**
   * @param limits a lane that reports more is ended: so it collects garbage before it reports more
   * @param shared the memory that this thread has made and may share with others
   */
  constructor(memory: SharedArrayBuffer, limits: MemoryLimits, shared: SharedCount) {
    this.#words = new Int32Array(memory)
    this.#limits = limits
    this.#shared = shared
  }

  start(): void {
    readyToCollect()
    tellOwnWork(this.#words, HEARTBEAT_OWN_WORK_WORD)
    store(this.#words, HEARTBEAT_TASK_WORD, ownTask())
    store(this.#words, HEARTBEAT_THREAD_WORD, threadId)
    setInterval(() => this.#beat(), LANE_BEAT_MS).unref()
  }

  /** Whose turn it is. @param number of a plugin that boots or has booted, from 1 on; 0 for the runtime */
  turnOf(number: number): void {
    store(this.#words, HEARTBEAT_TURN_WORD, number)
    if (number !== 0) store(this.#words, HEARTBEAT_PLUGIN_TURN_WORD, number)
  }

  /** True while no turn is to be noted. */
  get isAsked(): boolean {
    return load(this.#words, HEARTBEAT_ASKED_WORD) === 1
  }

  /** The next plugin boots. */
  answered(): void {
    store(this.#words, HEARTBEAT_ASKED_WORD, 0)
  }

  #beat(): void {
    const nowMs = performance.now()
    this.#longestDelayMs = Math.max(this.#longestDelayMs, nowMs - this.#lastBeatMs - LANE_BEAT_MS)
    this.#lastBeatMs = nowMs
    // Wakes no thread and publishes nothing else: each word stands alone.
    add(this.#words, HEARTBEAT_BEATS_WORD, 1)
    if (this.#beats++ % BEATS_PER_MEMORY_REPORT === 0) this.#reportMemory()
    if (this.#beats % BEATS_PER_REPORT === 0) {
      store(this.#words, HEARTBEAT_LOOP_DELAY_US_WORD, Math.round(Math.max(0, this.#longestDelayMs) * 1000))
      this.#longestDelayMs = 0
    }
  }

  #reportMemory(): void {
    let { used_heap_size, external_memory } = getHeapStatistics()
    let sharedBytes = this.#shared.bytes
    const { heapBytes, externalBytes } = this.#limits
    const isOver = used_heap_size > heapBytes || external_memory + sharedBytes > externalBytes
    if (isOver) {
      collectGarbage()
      ;({ used_heap_size, external_memory } = getHeapStatistics())
    }
    this.#shared.look()
    // What has grown meanwhile may be garbage: the next report collects it first.
    if (isOver) sharedBytes = this.#shared.bytes
    store(this.#words, HEARTBEAT_HEAP_KIB_WORD, Math.round(used_heap_size / 1024))
    store(this.#words, HEARTBEAT_EXTERNAL_KIB_WORD, Math.round((external_memory + sharedBytes) / 1024))
  }
}

/** The primary's side. */
export class HeartbeatReader extends SharedWords {
  get beats(): number {
    return load(this.words, HEARTBEAT_BEATS_WORD)
  }

  /** Longest delay of the lane's loop in its last whole second; null before the first. */
  get loopDelayMs(): number | null {
    return this.beats < BEATS_PER_REPORT ? null : load(this.words, HEARTBEAT_LOOP_DELAY_US_WORD) / 1000
  }

  /** True while the runtime parses, checks or writes what a client wants. */
  get isOwnWork(): boolean {
    return load(this.words, HEARTBEAT_OWN_WORK_WORD) === 1
  }

  /** Of the plugin whose turn it is, or was last, by the order in which they boot, from 1 on; 0 for the runtime, and after the boot. */
  get turn(): number {
    return load(this.words, HEARTBEAT_TURN_WORD)
  }

  /** The same, but of the last turn that was a plugin's. */
  get pluginTurn(): number {
    return load(this.words, HEARTBEAT_PLUGIN_TURN_WORD)
  }

  /** What notes turns is not to stand between the primary and the stack. @returns whose turn it is */
  askTurn(): number {
    const { turn } = this
    store(this.words, HEARTBEAT_ASKED_WORD, 1)
    return turn
  }

  /** False until the lane has told of its memory: its figures are 0 until then. */
  get hasReported(): boolean {
    return this.heapBytes > 0
  }

  get heapBytes(): number {
    return load(this.words, HEARTBEAT_HEAP_KIB_WORD) * 1024
  }

  get externalBytes(): number {
    return load(this.words, HEARTBEAT_EXTERNAL_KIB_WORD) * 1024
  }

  /** 0 until the thread has begun. */
  get threadId(): number {
    return load(this.words, HEARTBEAT_THREAD_WORD)
  }

  /** The thread's number in the operating system; 0 where that is not known. */
  get task(): number {
    return load(this.words, HEARTBEAT_TASK_WORD)
  }

  /** CPU time that the thread has used since it began, milliseconds; null when it is gone, or where the system does not tell. */
  get cpuMs(): number | null {
    return this.times()?.cpuMs ?? null
  }

  /** Null until it has begun, when it is gone, and where the system does not tell. */
  times(): ThreadTimes | null {
    return this.task === 0 ? null : timesOf(`/proc/self/task/${this.task}`)
  }
}
