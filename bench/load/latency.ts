const FINE_STEP_MS = 0.01
const FINE_UNTIL_MS = 2_000
const FINE_STEPS = FINE_UNTIL_MS / FINE_STEP_MS
const COARSE_STEP_MS = 1
const COARSE_STEPS = 120_000
const STEPS = FINE_STEPS + COARSE_STEPS

/** Milliseconds; all 0 when there are none. */
export interface LatencySummary {
  count: number
  p50: number
  p99: number
  p999: number
  max: number
}

/** Counts latencies in steps of 10 µs up to 2 s and of 1 ms for two minutes more. Longer ones count in the last step. Recording allocates nothing. */
export class LatencyHistogram {
  #counts = new Uint32Array(STEPS)
  #total = 0
  #maxMs = 0

  record(latencyMs: number): void {
    this.#counts[stepOf(latencyMs)]!++
    this.#total++
    if (latencyMs > this.#maxMs) this.#maxMs = latencyMs
  }

  clear(): void {
    this.#counts.fill(0)
    this.#total = 0
    this.#maxMs = 0
  }

  /** The upper edge of the step that holds the given share (0 to 1) of all latencies; 0 when there are none. */
  percentileMs(share: number): number {
    const wanted = Math.ceil(this.#total * share)
    let seen = 0
    for (let step = 0; step < STEPS && wanted > 0; step++) {
      seen += this.#counts[step]!
      if (seen >= wanted) return upperEdgeMs(step)
    }
    return 0
  }

  get maxMs(): number {
    return Number(this.#maxMs.toFixed(2))
  }

  summary(): LatencySummary {
    return {
      count: this.#total,
      p50: this.percentileMs(0.5),
      p99: this.percentileMs(0.99),
      p999: this.percentileMs(0.999),
      max: this.maxMs,
    }
  }
}

function stepOf(latencyMs: number): number {
  if (latencyMs < FINE_UNTIL_MS) return Math.floor(latencyMs / FINE_STEP_MS)
  return Math.min(STEPS - 1, FINE_STEPS + Math.floor((latencyMs - FINE_UNTIL_MS) / COARSE_STEP_MS))
}

function upperEdgeMs(step: number): number {
  if (step < FINE_STEPS) return Number(((step + 1) * FINE_STEP_MS).toFixed(2))
  return FINE_UNTIL_MS + (step - FINE_STEPS + 1) * COARSE_STEP_MS
}
