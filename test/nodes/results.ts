/** What was tried. */
export interface Trial {
  node: string
  what: string
  listener?: string
  database?: string
}

type Verdict = 'passed' | 'FAILED' | 'no binary'

interface Result extends Trial {
  verdict: Verdict
  seconds: number
}

const COLUMNS = ['node', 'what', 'listener', 'database', 'verdict', 'seconds'] as const

/** Tries one thing after another, keeps how each went, and prints the table. */
export class Results {
  readonly #results: Result[] = []

  get hasFailed(): boolean {
    return this.#results.some(({ verdict }) => verdict === 'FAILED')
  }

  /** @returns whether it passed; what it throws is printed */
  async try(trial: Trial, work: () => Promise<unknown>): Promise<boolean> {
    const startedMs = performance.now()
    let verdict: Verdict = 'passed'
    try {
      await work()
    } catch (error) {
      verdict = 'FAILED'
      console.error(`${named(trial)} failed\n`, error)
    }
    return this.#add(trial, verdict, startedMs)
  }

  /** It cannot be tried on this machine, which is no failure. */
  leaveOut(trial: Trial): void {
    this.#add(trial, 'no binary', performance.now())
  }

  print(): void {
    const head = { node: 'Node', what: 'what', listener: 'listener', database: 'database', verdict: '', seconds: 's' }
    const rows = [head, ...this.#results].map((row) => COLUMNS.map((column) => String(row[column] ?? '')))
    const widths = COLUMNS.map((_, index) => Math.max(...rows.map((row) => row[index]!.length)))
    const lines = rows.map((row) =>
      row
        .map((text, index) => text.padEnd(widths[index]!))
        .join('  ')
        .trimEnd(),
    )
    console.log(`\n${lines.join('\n')}\n`)
  }

  #add(trial: Trial, verdict: Verdict, startedMs: number): boolean {
    const seconds = Math.round((performance.now() - startedMs) / 1000)
    this.#results.push({ ...trial, verdict, seconds })
    console.log(`${named(trial)}: ${verdict} in ${seconds} s`)
    return verdict === 'passed'
  }
}

function named({ node, what, listener, database }: Trial): string {
  return [`Node ${node}`, what, listener, database].filter((part) => part !== undefined).join(', ')
}
