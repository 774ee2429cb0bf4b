/** What one lane has received of one run of `bench.tick`, as it is stored in the shared state. */
export interface TickCount {
  run: string
  handled: number
  /** How many of these were published in another thread. */
  crossed: number
  /** How many came before an older one of their key, or again. */
  misplaced: number
  /** Milliseconds since the epoch, with fractions. */
  lastAtMs: number
}

export const TICK_NAMESPACE = 'bench-ticks'
export const TICK_EVENT = 'bench.tick'

/** A clock that is the same in all threads of the process, in milliseconds since the epoch, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}
/** With this in its payload, the texts of a stored event take 490 bytes: what an order with some fields takes. */
export const STORED_NOTE = 'x'.repeat(321)

/** What loops of a driver store of an event, as long as the runtime's own. */
export const STORED_PAYLOAD = { run: 'round-1', thread: 12, note: STORED_NOTE }
export const STORED_ENVELOPE = JSON.stringify([
  null,
  'req_0197f7b0c0ffee',
  '',
  'bench.DriveTicks',
  1_700_000_000_000,
  'run\0thread\0note',
])
