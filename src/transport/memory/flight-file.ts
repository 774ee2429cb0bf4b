// A copy of the flight recorder outside of the process.
import { closeSync, constants, openSync, readFileSync, rmSync, writeFileSync, writeSync, writevSync } from 'node:fs'
import { createFlightRecorder, FLIGHT_FILE_BYTES, FlightReader } from './flight-recorder.ts'

/** A lane writes its record at most this often, milliseconds. One write takes 1.3 µs: it is 16 KiB into a file in memory. */
const WRITE_MS = 1
/** Where the file, and not the recorder, says for how long the loop has stood still, milliseconds (int32): in the free part of the first line. */
const STILL_BYTE = 16
const STILL_BYTES = 4

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
  /** The same around the mark of a standstill. */
  readonly #parts: [Buffer, Buffer, Buffer]
  /** -1 when it cannot be written any more. */
  #fd: number
  #writtenMs = 0

  /** @param memory of the recorder */
  constructor(path: string, memory: Buffer) {
    this.#path = path
    this.#bytes = memory.subarray(0, FLIGHT_FILE_BYTES)
    this.#parts = [
      this.#bytes.subarray(0, STILL_BYTE),
      Buffer.alloc(STILL_BYTES),
      this.#bytes.subarray(STILL_BYTE + STILL_BYTES),
    ]
    this.#fd = openFile(path)
  }

  /** The lane has begun a step. */
  begun(nowMs: number): void {
    if (Math.abs(nowMs - this.#writtenMs) < WRITE_MS) return
    this.#writtenMs = nowMs
    this.write()
  }

  /** @param stillMs since when the loop of the lane has stood still, as the primary sees it */
  write(stillMs = 0): void {
    if (this.#fd === -1) return
    try {
      if (stillMs === 0) writeSync(this.#fd, this.#bytes, 0, FLIGHT_FILE_BYTES, 0)
      else {
        // Not in the memory itself, which the lane writes, too.
        this.#parts[1].writeInt32LE(stillMs)
        writevSync(this.#fd, this.#parts, 0)
      }
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

/** What a flight file says. */
export interface FlightRecord {
  readonly flight: FlightReader
  /** How long the loop of the lane had stood still when that was last written; 0 when it turned. */
  readonly stillMs: number
}

/** @returns null for a file that is cut off */
export function readFlightFile(path: string): FlightRecord | null {
  const bytes = readFileSync(path)
  if (bytes.length < FLIGHT_FILE_BYTES) return null
  const memory = createFlightRecorder()
  Buffer.from(memory).set(bytes.subarray(0, FLIGHT_FILE_BYTES))
  return { flight: new FlightReader(memory), stillMs: bytes.readInt32LE(STILL_BYTE) }
}
