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
    console.table(this.#results, ['node', 'what', 'listener', 'database', 'verdict', 'seconds'])
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
