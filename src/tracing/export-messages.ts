import type { Settings } from '../core/config/schema.ts'

/** A thread that leaves spans, as its resource tells. */
export interface ThreadRing {
  readonly id: number
  readonly ring: SharedArrayBuffer
  /** `primary`, or a lane's number. */
  readonly thread: 'primary' | number
}

/** What the exporting thread is born with. */
export interface ExportInit {
  readonly settings: Settings
  readonly sources: readonly ThreadRing[]
}

export type ToExporter =
  | { type: 'source'; source: ThreadRing }
  /** Its thread has ended: what it left is fetched once more, and then nothing comes. */
  | { type: 'source-gone'; id: number }
  /** Export all there is, within so many milliseconds, and say so. */
  | { type: 'flush'; withinMs: number }

export type FromExporter =
  | { type: 'up' }
  /** Spans could not be exported. */
  | { type: 'trouble'; why: string; lost: number }
  /** They can again. */
  | { type: 'recovered'; lost: number }
  /** Spans have given way to newer ones, or found no room. */
  | { type: 'dropped'; count: number }
  | { type: 'flushed'; left: number }
