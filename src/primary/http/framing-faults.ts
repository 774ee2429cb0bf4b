import type { Log } from '../logging/process-log.ts'

/** One fault of a kind is told in this time, milliseconds, and how many more there were. */
export const SAMPLE_MS = 1000

interface Kind {
  total: number
  /** Since the last one that was told. */
  leftOut: number
  toldMs: number
  timer: NodeJS.Timeout | undefined
}

/** Connections that were closed because the framing of a request is not certain. Strangers cause them: all are counted, few are logged. */
export class FramingFaults {
  readonly #log: Log
  readonly #kinds = new Map<string, Kind>()

  constructor(log: Log) {
    this.#log = log
  }

  /** @param reason one of those of `HeadScan.framingFault` */
  note(reason: string, ip: string): void {
    let kind = this.#kinds.get(reason)
    if (kind === undefined) {
      kind = { total: 0, leftOut: 0, toldMs: Number.NEGATIVE_INFINITY, timer: undefined }
      this.#kinds.set(reason, kind)
    }
    kind.total++
    if (performance.now() - kind.toldMs >= SAMPLE_MS && kind.timer === undefined) return this.#tell(reason, kind, ip)
    kind.leftOut++
    kind.timer ??= setTimeout(() => this.#tell(reason, kind, ip), SAMPLE_MS).unref()
  }

  #tell(reason: string, kind: Kind, ip: string): void {
    const { leftOut } = kind
    clearTimeout(kind.timer)
    kind.timer = undefined
    kind.leftOut = 0
    kind.toldMs = performance.now()
    const more = leftOut === 0 ? {} : { left_out: leftOut }
    const message = leftOut === 0 ? 'A connection was closed' : `${leftOut} more connections were closed`
    this.#log('WARNING', `${message}: ${reason}`, 'http', { ip, ...more })
  }

  /** Since the start, by reason. */
  totals(): [reason: string, count: number][] {
    return [...this.#kinds].map(([reason, { total }]) => [reason, total])
  }
}
