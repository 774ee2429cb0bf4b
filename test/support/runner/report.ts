import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { spec, type TestEvent } from 'node:test/reporters'
import type { Entry } from './entries.ts'

/** What node:test counts at the end of a run, in its order. */
const COUNTS = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'] as const
const COUNT = new RegExp(`^(${COUNTS.join('|')}) (\\d+)$`)
const SLOWEST = 10
/** Milliseconds in the unit of time that Linux tells processor time in. */
const TICK_MS = 10
/** How often a terminal is told how far it is, and what is no terminal. */
const TELL_MS = 1000
const TELL_LOG_MS = 30_000

interface Cost {
  what: string
  wallMs: number
  /** Of the process and those that it started; null where the system does not tell, or others were in the same process. */
  cpuMs: number | null
}

interface EndedTest {
  nesting: number
  name: string
  details: { duration_ms: number }
}

/** Prints what some runs of node:test report as one run: how far it is while it runs, the slowest files, then node:test's own summary. */
export class Report {
  /** Files in which a test failed. */
  readonly failed = new Set<string>()
  readonly #output = new PassThrough({ objectMode: true })
  readonly #printed: Promise<void>
  readonly #counts = new Map<string, number>(COUNTS.map((name) => [name, 0]))
  readonly #costs: Cost[] = []
  /** What `npm test` has of it, and what it has not. */
  readonly #tiers = new Map<string, Cost>()
  readonly #startedMs = performance.now()
  readonly #startCpuMs = childCpuMs()
  #cpuMs = this.#startCpuMs
  /** Names of the entries that run, and since when. */
  readonly #running = new Map<string, number>()
  readonly #entries: number
  #ended = 0
  /** Names of entries. */
  readonly #broken: string[] = []
  #isStatusShown = false
  readonly #telling: NodeJS.Timeout

  /** @param entries how many processes there will be; 0: nobody knows */
  constructor(entries: number) {
    this.#entries = entries
    const isTerminal = process.stdout.isTTY === true
    this.#telling = setInterval(() => this.#tell(isTerminal), isTerminal ? TELL_MS : TELL_LOG_MS)
    this.#printed = new Promise((resolve, reject) => {
      const printer = new spec()
      this.#output.pipe(printer)
      printer.on('data', (chunk) => this.#print(chunk))
      printer.once('end', resolve).once('error', reject)
    })
  }

  /** One line for each file: seconds, seconds of processor time, path. The dearest first. */
  get costs(): string {
    const dearest = [...this.#costs].sort((one, other) => (other.cpuMs ?? 0) - (one.cpuMs ?? 0))
    return dearest.map((cost) => `${line(cost)}\n`).join('')
  }

  get hasFailed(): boolean {
    return this.#broken.length > 0 || this.#counts.get('fail')! + this.#counts.get('cancelled')! > 0
  }

  /** Takes the events of one run. @param entries what it runs */
  async add(run: AsyncIterable<TestEvent>, entries: readonly Entry[]): Promise<void> {
    const paths = new Map(entries.map((entry) => [entry.path, entry]))
    for await (const event of run) {
      this.#follow(event, paths)
      if (!this.#count(event)) this.#output.write(event)
    }
  }

  /** @param notes printed before the summary. Resolves when everything is printed. */
  async end(notes: readonly string[]): Promise<void> {
    clearInterval(this.#telling)
    const slowest = this.#costs.sort((one, other) => other.wallMs - one.wallMs).slice(0, SLOWEST)
    const total = {
      what: 'all',
      wallMs: performance.now() - this.#startedMs,
      cpuMs: between(this.#startCpuMs, childCpuMs()),
    }
    const message = [
      ...['slowest files (seconds, seconds of processor time):', ...slowest.map(line)],
      ...(this.#tiers.size > 1 ? [...this.#tiers.values()].map(line) : []),
      line(total),
      ...notes,
      '',
    ]
    this.#output.write({ type: 'test:stdout', data: { message: message.join('\n') } })
    for (const [name, count] of this.#counts) this.#diagnose(`${name} ${count}`)
    this.#diagnose(`duration_ms ${performance.now() - this.#startedMs}`)
    this.#output.end()
    await this.#printed
  }

  /** Events of the entries themselves come when they happen; those of their tests in the order of the entries. */
  #follow({ type, data }: TestEvent, paths: ReadonlyMap<string, Entry>): void {
    if (type === 'test:pass' || type === 'test:fail') this.#followShared(type, data, paths)
    if (type !== 'test:dequeue' && type !== 'test:complete') return
    const entry = data.nesting === 0 ? paths.get(resolve(data.name)) : undefined
    if (entry === undefined) return
    const name = shortName(entry)
    if (type === 'test:dequeue') {
      this.#running.set(name, performance.now())
      return
    }
    const cpuMs = childCpuMs()
    const wallMs = performance.now() - (this.#running.get(name) ?? performance.now())
    this.#costs.push({
      what: entry.files.length === 1 ? entry.files[0]! : name,
      wallMs,
      cpuMs: between(this.#cpuMs, cpuMs),
    })
    this.#addToTier(tierOf(entry.files), cpuMs)
    this.#cpuMs = cpuMs
    this.#running.delete(name)
    this.#ended++
    if (data.details.passed === true) return
    this.#broken.push(name)
    if (entry.files.length === 1) this.failed.add(entry.files[0]!)
  }

  /** Its processes begin before those of the next one: what it takes is the time until the last of them has ended. */
  #addToTier(what: string, cpuMs: number | null): void {
    const sofar = this.#tiers.get(what)?.cpuMs ?? 0
    const own = between(this.#cpuMs, cpuMs)
    const wallMs = performance.now() - this.#startedMs
    this.#tiers.set(what, { what, wallMs, cpuMs: own === null ? null : sofar + own })
  }

  /** Files that share a process are suites of it, by their paths. */
  #followShared(type: string, data: EndedTest, paths: ReadonlyMap<string, Entry>): void {
    const what = data.name
    if (data.nesting !== 0 || ![...paths.values()].some(({ files }) => files.length > 1 && files.includes(what))) return
    if (type === 'test:fail') this.failed.add(what)
    this.#costs.push({ what, wallMs: data.details.duration_ms, cpuMs: null })
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

  #print(chunk: string | Buffer): void {
    if (this.#isStatusShown) process.stdout.write('\r\x1b[K')
    this.#isStatusShown = false
    process.stdout.write(chunk)
  }

  /** Tests are printed file by file: this says what goes on meanwhile. */
  #tell(isTerminal: boolean): void {
    if (this.#running.size === 0) return
    const seconds = Math.round((performance.now() - this.#startedMs) / 1000)
    const failed = this.#broken.length > 0 ? `; failed: ${this.#broken.join(', ')}` : ''
    const text = `${seconds} s, ${this.#ended} of ${this.#entries} processes${failed}; running: ${[...this.#running.keys()].join(', ')}`
    if (!isTerminal) {
      process.stdout.write(`… ${text}\n`)
      return
    }
    process.stdout.write(`\r\x1b[K${text.slice(0, process.stdout.columns - 1)}`)
    this.#isStatusShown = true
  }
}

function tierOf([file]: readonly string[]): string {
  return file!.startsWith('test/rooms/') ? 'up to the last of the rooms' : 'up to the last of `npm test`'
}

function shortName({ path }: Entry): string {
  return path
    .replace(/^.*\/(?=[^/]+\/[^/]+$)/, '')
    .replace(/\.test\.c?[jt]s$/, '')
    .replace(/^heddle-test-bundles-[^/]*\//, '')
}

/** Processor time of the processes that this one has started and that have ended, with all of theirs; null where the system does not tell. */
function childCpuMs(): number | null {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[13]) + Number(fields[14])) * TICK_MS
  } catch {
    return null
  }
}

function between(beforeMs: number | null, afterMs: number | null): number | null {
  return beforeMs === null || afterMs === null ? null : afterMs - beforeMs
}

function line({ what, wallMs, cpuMs }: Cost): string {
  return `  ${seconds(wallMs)}  ${seconds(cpuMs)}  ${what}`
}

function seconds(ms: number | null): string {
  return (ms === null ? '' : (ms / 1000).toFixed(1)).padStart(7)
}
