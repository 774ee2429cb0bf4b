// Keeps copies of the flight recorders outside of the process, for the next one.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { BlackBox } from '../../contracts/registry.ts'
import {
  BOOTING_ENDING,
  createFlightRecorder,
  FLIGHT_FILE_BYTES,
  FlightFile,
  FlightRecorder,
} from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Routing } from '../http/routes.ts'
import { laneNames, routeNames, type WorkNames } from './work.ts'

/** Looks after which the copy of a recorder is renewed that has changed, ten times a second: so that what has ended does not stand there as in flight. */
const RENEW_LOOKS = 5
/** A loop that has not turned for this long stands still, milliseconds: two beats. What is in flight there may be about to end the process. */
const STILL_MS = 40
export const NAMES_FILE = 'names.json'
export const PRIMARY_FILE = 'primary.flight'
export const FLIGHT_ENDING = '.flight'
/** As in src/guardian/crash-report.cjs. */
const PROCESS_PREFIX = 'process-'
export const FORCED_FILE = 'forced-termination.json'

interface Entry {
  readonly path: string
  readonly source: Buffer
  /** As it was when it was last written. */
  readonly seen: Buffer
  readonly file: FlightFile
}

/** A thread that is ended from outside, though native calls of it may be under way, which can end the process. */
export interface ForcedTermination {
  atMs: number
  lane: number
  /** Why the lane had to leave; null where there is only new code. */
  message: string | null
  guilty: BlackBox['guilty']
}

/** Keeps the copies of the flight recorders outside of the process, in the guardian's folder: of each lane, and of the primary. */
export class FlightMirror {
  /** What the primary itself records of its plugins' requests. */
  readonly primary: FlightRecorder
  readonly folder: string
  /** Its process id. */
  readonly guardian = process.ppid
  readonly #entries = new Map<Lane | null, Entry>()
  #lanesBegun = 0
  #looks = 0
  #isNaming = false

  /** @param folder the guardian's: it reads it when this process is dead */
  constructor(folder: string) {
    this.folder = folder
    const memory = createFlightRecorder()
    // Its loop cannot say that it stands still: so it writes what it begins, as the lanes do.
    this.primary = new FlightRecorder(memory, this.#add(null, PRIMARY_FILE, memory).file)
  }

  /** @returns the file that the lane writes, too */
  begin(lane: Lane, memory: SharedArrayBuffer): string {
    return this.#add(lane, `lane-${lane.index}-${this.#lanesBegun++}${FLIGHT_ENDING}`, memory).path
  }

  #add(lane: Lane | null, name: string, memory: SharedArrayBuffer): Entry {
    const path = join(this.folder, name)
    const seen = Buffer.alloc(FLIGHT_FILE_BYTES)
    const source = Buffer.from(memory)
    const entry: Entry = { path, source, seen, file: new FlightFile(path, source) }
    this.#entries.set(lane, entry)
    return entry
  }

  /** The primary begins to boot a plugin of its own. @param file null when it has booted all */
  booting(file: string | null): void {
    this.#entries.get(null)!.file.booting(file)
  }

  /** The lane's thread has ended, and the process goes on. */
  end(lane: Lane): void {
    const entry = this.#entries.get(lane)
    if (entry === undefined) return
    this.#entries.delete(lane)
    entry.file.close()
    rmSync(entry.path, { force: true })
    rmSync(entry.path + BOOTING_ENDING, { force: true })
  }

  /** The thread of a lane is about to be ended, which may cost the process. @param box why the lane had to leave */
  noteForcedTermination({ index }: Lane, box: BlackBox | null): void {
    const last: ForcedTermination = {
      atMs: Date.now(),
      lane: index,
      message: box?.message ?? null,
      guilty: box?.guilty ?? null,
    }
    try {
      writeFileSync(join(this.folder, FORCED_FILE), JSON.stringify(last), { mode: 0o600 })
    } catch {
      // The folder is gone with the guardian, and this process is about to end.
    }
  }

  /** A process that plugins have started is the guardian's to end when this one is gone at once. @param start null when it has ended */
  noteProcess(pid: number, start: number | null): void {
    const file = join(this.folder, `${PROCESS_PREFIX}${pid}`)
    try {
      if (start === null) rmSync(file, { force: true })
      else writeFileSync(file, String(start), { mode: 0o600 })
    } catch {
      // The folder is gone with the guardian, and this process is about to end.
    }
  }

  /** A round of looks begins: one every 20 ms. */
  beginLook(): void {
    if (this.#looks++ % RENEW_LOOKS === 0) for (const entry of this.#entries.values()) renew(entry)
  }

  /** @param stillMs how long the loop of the lane has not turned */
  look(lane: Lane, stillMs: number): void {
    const isStill = stillMs >= STILL_MS
    if (isStill === lane.flight.isStill) return
    lane.flight.isStill = isStill
    const entry = this.#entries.get(lane)
    if (entry !== undefined) renew(entry)
  }

  /**
   * Writes what the numbers mean, soon: the routes, lanes or subscriptions have changed.
   * @param files those of the primary's plugins
   */
  nameSoon(lanes: () => readonly Lane[], routing: Routing, files: Readonly<Record<string, string>>): void {
    if (this.#isNaming) return
    this.#isNaming = true
    setImmediate(() => {
      this.#isNaming = false
      try {
        const names = this.#names(lanes(), routing, files)
        const path = join(this.folder, NAMES_FILE)
        // The process may die in the middle: cut off, the file would name nothing.
        writeFileSync(`${path}.part`, JSON.stringify(names), { mode: 0o600 })
        renameSync(`${path}.part`, path)
      } catch {
        // The folder is gone with the guardian, and this process is about to end.
      }
    })
  }

  #names(lanes: readonly Lane[], routing: Routing, primaryFiles: Readonly<Record<string, string>>): WorkNames {
    const names: WorkNames = { routes: routeNames(routing), lanes: {}, files: { ...primaryFiles } }
    for (const lane of lanes) {
      const entry = this.#entries.get(lane)
      if (entry === undefined || lane.manifest === null) continue
      Object.assign(names.files, lane.manifest.files)
      names.lanes[basename(entry.path)] = laneNames(lane)
    }
    return names
  }
}

/** Costs a comparison where nothing has changed. */
function renew({ source, seen, file }: Entry): void {
  if (source.compare(seen, 0, FLIGHT_FILE_BYTES, 0, FLIGHT_FILE_BYTES) === 0) return
  // What changes from now on is seen at the next look.
  source.copy(seen, 0, 0, FLIGHT_FILE_BYTES)
  file.write()
}
