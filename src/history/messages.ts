import type { HistoryInit } from '../contracts/requests.ts'
import type { HistoryQuery } from './query.ts'

/** What the history's thread is started with. */
export interface StoreInit {
  readonly path: string
  readonly maxBytes: number
  readonly keepMs: number
  /** Of this process. */
  readonly replica: string
  /** How long the end of the process takes that its guardian has left; null without a guardian. */
  readonly shutdownMs: number | null
  readonly sources: readonly HistorySource[]
}

export interface HistorySource extends Pick<HistoryInit, 'ring' | 'thread'> {
  readonly id: number
}

export type ToStore =
  | { type: 'source'; source: HistorySource }
  /** The thread has ended: its ring is read once more, then forgotten. */
  | { type: 'source-gone'; id: number }
  | { type: 'query'; number: number; query: HistoryQuery }
  /** Write what is there, and answer with `flushed`. */
  | { type: 'flush' }

export type FromStore =
  | { type: 'up' }
  | { type: 'trouble'; why: string }
  | { type: 'answer'; number: number; answer: unknown }
  | { type: 'failed'; number: number; why: string }
  | { type: 'flushed' }
