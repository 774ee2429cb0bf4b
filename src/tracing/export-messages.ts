import type { Settings } from '../core/config/schema.ts'

/** A thread that makes spans, and its ring. */
export interface ThreadRing {
  readonly id: number
  readonly ring: SharedArrayBuffer
  /** `primary`, or a lane's number. */
  readonly thread: 'primary' | number
}

/** What the exporting thread is started with. */
export interface ExportInit {
  readonly settings: Settings
  readonly sources: readonly ThreadRing[]
}

export type ToExporter =
  | { type: 'source'; source: ThreadRing }
  /** The thread has ended: its ring is read once more, then forgotten. */
  | { type: 'source-gone'; id: number }
  /** The process is about to end: its last spans are to be exported as they come. */
  | { type: 'hurry' }
  /** Export all spans within so many milliseconds, and answer with `flushed`. */
  | { type: 'flush'; withinMs: number }

export type FromExporter =
  | { type: 'up' }
  /** Spans could not be exported. */
  | { type: 'trouble'; why: string; lost: number }
  /** Spans can be exported again. */
  | { type: 'recovered'; lost: number }
  /** Spans were dropped for newer ones, or because there was no room. */
  | { type: 'dropped'; count: number }
  | { type: 'flushed'; left: number }
