/** What one lane has seen of one run of `bench.tick`, as it stands in the shared state. */
export interface TickCount {
  run: string
  handled: number
  /** Of these, published in another thread. */
  crossed: number
  /** Milliseconds since the epoch, with fractions. */
  lastAtMs: number
}

export const TICK_NAMESPACE = 'bench-ticks'
export const TICK_EVENT = 'bench.tick'

/** A clock that all threads of the process agree on, in milliseconds since the epoch, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}
