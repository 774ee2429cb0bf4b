import type { RequestPart } from '../contracts/requests.ts'

/**
 * What threads tell the history's thread. Each entry is one frame of JSON in the ring of its thread. Times are milliseconds since the epoch
 * with fractions, by one clock for all threads; durations are milliseconds.
 */

/** A request that is still open: of one that ends soon nothing is told before. */
export interface BegunEntry {
  type: 'begun'
  id: string
  /** The id that its client has chosen. */
  clientId: string | null
  atMs: number
  method: string
  path: string
  /** Path template; empty where there is no such route. */
  route: string
  plugin: string
}

/** A request that has ended. */
export interface RequestEntry extends Omit<BegunEntry, 'type'> {
  type: 'request'
  ms: number
  /** 0: the client was gone before there was an answer. */
  status: number
  /** -1: the primary itself. */
  lane: number
}

export type HistoryEntry = BegunEntry | RequestEntry | RequestPart
