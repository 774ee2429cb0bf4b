// The last steps of a thread, readable after its end, and their copy outside of the process.
import { closeSync, constants, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import type { RawBuffer } from './spsc-ring.ts'

// Taken before plugins can replace them.
const { load, store } = Atomics

/**
 * Flight recorder of one lane: written by the lane, but for STILL, and read by the primary while the lane is stuck and after its thread is gone.
 *
 *   byte 0              64                                64 + 256 × 64
 *   ┌───────────────────┬─────────────────────────────────┬───────────────────┐
 *   │CURSOR LENGTH STILL│ steps, the oldest overwritten   │ exit report, UTF-8│
 *   └───────────────────┴─────────────────────────────────┴───────────────────┘
 *
 * CURSOR counts steps for ever, modulo 2^32; LENGTH is the length of the exit report in bytes; STILL is 1 while the primary sees the lane's loop stand
 * still. A step takes one cache line:
 *
 *   ┌────────────────┬────────────────┬────────┬──────┬─────────┬───────┬──────────────────────┐
 *   │ BEGUN (float64)│ ENDED (float64)│ NUMBER │ KIND │ SUBJECT │ FRAME │ id, 32 bytes latin-1 │
 *   └────────────────┴────────────────┴────────┴──────┴─────────┴───────┴──────────────────────┘
 *   bytes 0–7          8–15             word 4   word 5 word 6    word 7  bytes 32–63
 *
 * KIND holds the kind in its low byte, FAILED in bit 8, the id's length from bit 16 on. ENDED is 0 while the step runs.
 * There is no lock: a reader of a living lane may see one torn step, the one that is being written.
 */
const CURSOR_WORD = 0
const REPORT_LENGTH_WORD = 1
const STILL_WORD = 2
const STEPS_BYTE = 64
const STEP_BYTES = 64
const STEP_WORDS = STEP_BYTES >> 2
const STEP_DOUBLES = STEP_BYTES >> 3
const NUMBER = 4
const KIND = 5
const SUBJECT = 6
const FRAME = 7
const ID_BYTE = 32
const FAILED_BIT = 1 << 8

/** Steps that are kept. */
export const FLIGHT_STEPS = 256
const STEP_MASK = FLIGHT_STEPS - 1
/** Bytes of a step's id that are kept. */
export const FLIGHT_ID_BYTES = 32
/** Bytes of the reason that are kept which a thread gave before it ended. */
export const EXIT_REPORT_BYTES = 8192
const REPORT_BYTE = STEPS_BYTE + FLIGHT_STEPS * STEP_BYTES
/** Bytes of the recorder that are copied into its file: all but the exit report. */
export const FLIGHT_FILE_BYTES = REPORT_BYTE

export const STEP_REQUEST = 1
export const STEP_CALL = 2
/** An event that the hub has delivered. */
export const STEP_EVENT = 3
export const STEP_JOB = 4

/** One step as it stands in memory. */
export interface RawStep {
  kind: number
  /** A request's route number, a call's number in the name table, an event's subscriber in the lane, a job's number. */
  subject: number
  /** Number of the frame that it answers; -1 for a call. */
  frame: number
  /** Request id, or event id without its prefix; empty for a call. */
  id: string
  /** Milliseconds since the epoch. */
  begunMs: number
  /** 0 when it had not ended. */
  endedMs: number
  failed: boolean
}

export function createFlightRecorder(): SharedArrayBuffer {
  return new SharedArrayBuffer(REPORT_BYTE + EXIT_REPORT_BYTES)
}

/** Its memory, as both sides see it. */
class FlightMemory {
  protected readonly control: Int32Array
  protected readonly words: Int32Array
  protected readonly doubles: Float64Array
  protected readonly bytes: RawBuffer
  protected readonly report: Buffer

  constructor(memory: SharedArrayBuffer) {
    this.control = new Int32Array(memory, 0, STEPS_BYTE >> 2)
    this.words = new Int32Array(memory, STEPS_BYTE, FLIGHT_STEPS * STEP_WORDS)
    this.doubles = new Float64Array(memory, STEPS_BYTE, FLIGHT_STEPS * STEP_DOUBLES)
    this.bytes = Buffer.from(memory, STEPS_BYTE, FLIGHT_STEPS * STEP_BYTES) as RawBuffer
    this.report = Buffer.from(memory, REPORT_BYTE, EXIT_REPORT_BYTES)
  }
}

/** The lane's side: one plain write of a cache line per step, and one more when it ends. */
export class FlightRecorder extends FlightMemory {
  readonly #copy: FlightFile | null
  #next = 0

  /** @param copy the copy outside of the process; null when there is none */
  constructor(memory: SharedArrayBuffer, copy: FlightFile | null = null) {
    super(memory)
    this.#copy = copy
  }

  /** @returns the step's number, for `end` */
  begin(kind: number, subject: number, frame: number, id: string, begunMs: number): number {
    const number = this.#next
    this.#next = (number + 1) | 0
    const slot = number & STEP_MASK
    const word = slot * STEP_WORDS
    this.doubles[slot * STEP_DOUBLES] = begunMs
    this.doubles[slot * STEP_DOUBLES + 1] = 0
    this.words[word + NUMBER] = number
    this.words[word + SUBJECT] = subject
    this.words[word + FRAME] = frame
    const idBytes = id === '' ? 0 : this.bytes.latin1Write(id, slot * STEP_BYTES + ID_BYTE, FLIGHT_ID_BYTES)
    this.words[word + KIND] = kind | (idBytes << 16)
    // Publishes the step to a reader in another thread; pairs with its load of CURSOR.
    store(this.control, CURSOR_WORD, this.#next)
    if (kind !== STEP_CALL) this.#copy?.begun(begunMs)
    return number
  }

  /** Does nothing when the step has been overwritten. */
  end(number: number, endedMs: number, failed: boolean): void {
    const slot = number & STEP_MASK
    const word = slot * STEP_WORDS
    if (this.words[word + NUMBER] !== number) return
    this.doubles[slot * STEP_DOUBLES + 1] = endedMs
    if (failed) this.words[word + KIND]! |= FAILED_BIT
  }

  /** Ends the step of a frame: does nothing when it has been overwritten, or is another frame's. */
  endFrame(number: number, frame: number, endedMs: number, failed: boolean): void {
    if (this.words[(number & STEP_MASK) * STEP_WORDS + FRAME] === frame) this.end(number, endedMs, failed)
  }

  /** Why the thread is about to end. The first reason is kept. */
  writeExitReport(text: string): void {
    if (load(this.control, REPORT_LENGTH_WORD) !== 0) return
    store(this.control, REPORT_LENGTH_WORD, this.report.write(text))
  }
}

/** The primary's side. */
export class FlightReader extends FlightMemory {
  /** The last steps, oldest first. */
  steps(): RawStep[] {
    const steps: RawStep[] = []
    const cursor = load(this.control, CURSOR_WORD)
    for (let number = (cursor - FLIGHT_STEPS) | 0; number !== cursor; number = (number + 1) | 0) {
      const slot = number & STEP_MASK
      const word = slot * STEP_WORDS
      const kind = this.words[word + KIND]!
      // Never written, or being written just now.
      if (kind === 0 || this.words[word + NUMBER] !== number) continue
      const idAt = slot * STEP_BYTES + ID_BYTE
      steps.push({
        kind: kind & 0xff,
        subject: this.words[word + SUBJECT]!,
        frame: this.words[word + FRAME]!,
        id: this.bytes.toString('latin1', idAt, idAt + (kind >>> 16)),
        begunMs: this.doubles[slot * STEP_DOUBLES]!,
        endedMs: this.doubles[slot * STEP_DOUBLES + 1]!,
        failed: (kind & FAILED_BIT) !== 0,
      })
    }
    return steps
  }

  /** The loop of the lane stood still when the primary looked last. */
  get isStill(): boolean {
    return load(this.control, STILL_WORD) === 1
  }

  set isStill(isStill: boolean) {
    store(this.control, STILL_WORD, isStill ? 1 : 0)
  }

  get hasExitReport(): boolean {
    return load(this.control, REPORT_LENGTH_WORD) !== 0
  }

  /** The reason that the thread gave before it ended; empty when there is none. */
  exitReport(): string {
    return this.report.toString('utf8', 0, load(this.control, REPORT_LENGTH_WORD))
  }
}

/** A lane writes its record at most this often, milliseconds. One write takes 1.3 µs: it is 16 KiB into a file in memory. */
const WRITE_MS = 1

/** Ending of the file beside it that names the plugin's file which is being booted. */
export const BOOTING_ENDING = '.booting'

/**
 * A copy of a flight recorder in a file, for the case that the whole process is gone at once, and its shared memory with it. The lane itself writes it
 * when it begins something, and the primary ten times a second and as soon as the lane stands still: whoever writes last writes all of it.
 * Both write the memory of the recorder itself: the system writes one after the other, so the later write has all that stood in the earlier.
 */
export class FlightFile {
  readonly #path: string
  readonly #bytes: Buffer
  /** -1 when it cannot be written any more. */
  #fd: number
  #writtenMs = 0

  /** @param memory of the recorder */
  constructor(path: string, memory: Buffer) {
    this.#path = path
    this.#bytes = memory.subarray(0, FLIGHT_FILE_BYTES)
    this.#fd = openFile(path)
  }

  /** The lane has begun a step. */
  begun(nowMs: number): void {
    if (Math.abs(nowMs - this.#writtenMs) < WRITE_MS) return
    this.#writtenMs = nowMs
    this.write()
  }

  write(): void {
    if (this.#fd === -1) return
    try {
      writeSync(this.#fd, this.#bytes, 0, FLIGHT_FILE_BYTES, 0)
    } catch {
      // The folder or the memory is gone. What is in flight is then not known after an abort: nothing else depends on it.
      this.close()
    }
  }

  /** The lane begins to boot a plugin. @param file null when it has booted all */
  booting(file: string | null): void {
    const path = this.#path + BOOTING_ENDING
    try {
      if (file === null) rmSync(path, { force: true })
      else writeFileSync(path, file, { mode: 0o600 })
    } catch {
      // As for `write`.
    }
  }

  close(): void {
    if (this.#fd === -1) return
    closeSync(this.#fd)
    this.#fd = -1
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600)
  } catch {
    // As above: it is a matter of what is known after an abort.
    return -1
  }
}

/** @returns null for a file that is cut off */
export function readFlightFile(path: string): FlightReader | null {
  const bytes = readFileSync(path)
  if (bytes.length < FLIGHT_FILE_BYTES) return null
  const memory = createFlightRecorder()
  Buffer.from(memory).set(bytes.subarray(0, FLIGHT_FILE_BYTES))
  return new FlightReader(memory)
}
