const BUCKET_MS = 0.01
const BUCKETS = 200_000

/** Counts latencies in steps of 10 µs up to 2 s; later ones fall into the last step. Recording allocates nothing. */
export class LatencyHistogram {
  #counts = new Uint32Array(BUCKETS)
  #total = 0
  #maxMs = 0

  record(latencyMs: number): void {
    const bucket = Math.min(BUCKETS - 1, Math.floor(latencyMs / BUCKET_MS))
    this.#counts[bucket]!++
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
    for (let bucket = 0; bucket < BUCKETS && wanted > 0; bucket++) {
      seen += this.#counts[bucket]!
      if (seen >= wanted) return Number(((bucket + 1) * BUCKET_MS).toFixed(2))
    }
    return 0
  }

  get maxMs(): number {
    return Number(this.#maxMs.toFixed(2))
  }
}
