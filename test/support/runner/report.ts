import { relative } from 'node:path'
import { PassThrough } from 'node:stream'
import { spec, type TestEvent } from 'node:test/reporters'
import type { Job } from './jobs.ts'

/** What node:test counts at the end of a run, in its order. */
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'] as const
const COUNT = new RegExp(`^(${COUNTS.join('|')}) (\\d+)$`)
const SLOWEST = 10

export interface Ran {
  job: Job
  events: readonly TestEvent[]
  wallMs: number
  /** Of the process and those that it started; null where the system does not tell. */
  cpuMs: number | null
}

interface Cost {
  what: string
  wallMs: number
  cpuMs: number | null
}

/** Prints what many runs of node:test report as one run: their tests as they end, then the slowest files, then the sums. */
export class Report {
  readonly #output = new PassThrough({ objectMode: true })
  readonly #printed: Promise<void>
  readonly #counts = new Map<string, number>(COUNTS.map((name) => [name, 0]))
  readonly #costs: Cost[] = []
  /** Jobs in which a test failed. */
  readonly failed: Job[] = []
  readonly #startedMs = performance.now()
  #cpuMs: number | null = 0

  constructor() {
    this.#printed = new Promise((resolve, reject) => {
      const printer = new spec()
      this.#output.pipe(printer)
      printer.once('end', resolve).once('error', reject).pipe(process.stdout)
    })
  }

  /** One line for each file: seconds, seconds of processor time, path. The dearest first. */
  get costs(): string {
    const dearest = [...this.#costs].sort((one, other) => (other.cpuMs ?? 0) - (one.cpuMs ?? 0))
    return dearest.map((cost) => `${line(cost)}\n`).join('')
  }

  get hasFailed(): boolean {
    return this.#counts.get('fail')! + this.#counts.get('cancelled')! > 0
  }

  add({ job, events, wallMs, cpuMs }: Ran): void {
    for (const event of events) if (!this.#count(event)) this.#output.write(event)
    if (events.some(({ type }) => type === 'test:fail')) this.failed.push(job)
    this.#cpuMs = this.#cpuMs === null || cpuMs === null ? null : this.#cpuMs + cpuMs
    if (job.kind !== 'together') this.#costs.push({ what: job.files[0]!, wallMs, cpuMs })
    else this.#costs.push(...costsWithin(events))
  }

  /** Resolves when everything is printed. */
  async end(): Promise<void> {
    const slowest = this.#costs.sort((one, other) => other.wallMs - one.wallMs).slice(0, SLOWEST)
    const lines = slowest.map(line)
    const total = line({ what: 'all files', wallMs: performance.now() - this.#startedMs, cpuMs: this.#cpuMs })
    const message = [
      'slowest files (seconds, seconds of processor time):',
      ...lines,
      ...(this.#costs.length > 1 ? [total] : []),
      '',
    ]
    this.#output.write({ type: 'test:stdout', data: { message: message.join('\n') } })
    for (const [name, count] of this.#counts) this.#diagnose(`${name} ${count}`)
    this.#diagnose(`duration_ms ${performance.now() - this.#startedMs}`)
    this.#output.end()
    await this.#printed
  }

  /** @returns whether the event was a part of the summary of its own run */
  #count(event: TestEvent): boolean {
    if (event.type === 'test:summary') return true
    if (event.type !== 'test:diagnostic' || event.data.nesting !== 0) return false
    const [, name, count] = COUNT.exec(event.data.message) ?? []
    if (name === undefined) return event.data.message.startsWith('duration_ms ')
    this.#counts.set(name, this.#counts.get(name)! + Number(count))
    return true
  }

  #diagnose(message: string): void {
    this.#output.write({ type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } })
  }
}

/** The cost of files that shared a process: the time of their tests. */
function costsWithin(events: readonly TestEvent[]): Cost[] {
  const costs = new Map<string, number>()
  for (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.nesting !== 0 || data.file === undefined) continue
    costs.set(data.file, (costs.get(data.file) ?? 0) + data.details.duration_ms)
  }
  return [...costs].map(([file, wallMs]) => ({ what: relative(process.cwd(), file), wallMs, cpuMs: null }))
}

function line({ what, wallMs, cpuMs }: Cost): string {
  return `  ${seconds(wallMs)}  ${seconds(cpuMs)}  ${what}`
}

function seconds(ms: number | null): string {
  return (ms === null ? '' : (ms / 1000).toFixed(1)).padStart(7)
}
