/** Whose write it is: a client's user, a client's count, or the poison that a fault pours. */
export type Subject = 'user' | 'count' | 'poison'
/** The answer's status; `reset`: the connection broke; `silent`: no answer in time. */
export type Outcome = number | 'reset' | 'silent'

/** One write that a client asked for, and what it was told. */
export interface Write {
  readonly subject: Subject
  readonly requestId: string
  /** The user's e-mail, or the event's number. */
  readonly key: string
  /** How the event's subscriber is to behave; empty for a user. */
  readonly course: string
  readonly outcome: Outcome
  /** The user's or the event's id: null unless the answer named it. */
  readonly id: string | null
}

/** A write that the service has promised. */
export type Acknowledged = Write & { readonly id: string }

export function isAcknowledged(write: Write): write is Acknowledged {
  return typeof write.outcome === 'number' && write.outcome >= 200 && write.outcome < 300 && write.id !== null
}

/** Everything that was asked and answered. Times are milliseconds on one clock. */
export class Ledger {
  readonly writes: Write[] = []
  readonly #startedMs: number
  readonly #latenciesMs = new Map<Subject, number[]>()
  #lastSuccessMs: number
  #longestGapMs = 0

  constructor(startedMs: number) {
    this.#startedMs = startedMs
    this.#lastSuccessMs = startedMs
  }

  record(write: Write, sentMs: number, answeredMs: number): void {
    this.writes.push(write)
    if (!isAcknowledged(write)) return
    const latencies = this.#latenciesMs.get(write.subject)
    if (latencies === undefined) this.#latenciesMs.set(write.subject, [answeredMs - sentMs])
    else latencies.push(answeredMs - sentMs)
    this.#longestGapMs = this.longestGapMs(answeredMs)
    this.#lastSuccessMs = answeredMs
  }

  /** The longest time without a successful answer from the start up to now. */
  longestGapMs(nowMs: number): number {
    return Math.max(this.#longestGapMs, nowMs - this.#lastSuccessMs)
  }

  elapsedMs(nowMs: number): number {
    return nowMs - this.#startedMs
  }

  countByOutcome(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { outcome } of this.writes) counts[outcome] = (counts[outcome] ?? 0) + 1
    return counts
  }

  /** The latency that the given share (0 to 1) of the successful answers did not exceed, milliseconds; null when there are none. */
  percentileMs(subject: Subject, share: number): number | null {
    const sorted = (this.#latenciesMs.get(subject) ?? []).toSorted((a, b) => a - b)
    return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null
  }
}
