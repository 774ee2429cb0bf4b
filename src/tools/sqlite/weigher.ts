import type Database from 'better-sqlite3'
import {
  hasHeavyPattern,
  MAX_STEPS,
  type PlanLine,
  type PlanWeight,
  type WordsOfWeight,
  weightOf,
  wordsOfWeight,
} from './plan-weight.ts'

/** Milliseconds for which the weight of a statement that scans tables is believed: they grow. */
const BELIEVED_MS = 10_000
/** Statements that have a plan. */
const PLANNED = new Set(['SELECT', 'WITH', 'VALUES', 'INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'CREATE'])
/** Rows of a table without row ids are counted up to here. */
const MAX_COUNTED = MAX_STEPS + 1

/** Says of one statement whether it may run for longer than a lane should stand still. */
export class Weigher {
  readonly #database: Database.Database
  readonly #sql: string
  readonly #words: WordsOfWeight
  readonly #isPlanned: boolean
  /** Values do not change the plan. */
  readonly #nulls: Record<number, null> = {}
  #weight: PlanWeight | null = null
  #weighedMs = 0

  constructor(database: Database.Database, sql: string, command: string, parameterCount: number) {
    this.#database = database
    this.#sql = sql
    this.#words = wordsOfWeight(sql)
    this.#isPlanned = PLANNED.has(command)
    for (let n = 1; n <= parameterCount; n++) this.#nulls[n] = null
  }

  isHeavy(params: readonly unknown[]): boolean {
    const { matchesPatterns, hasHeavyLiteral, hasLimit } = this.#words
    if (matchesPatterns && (hasHeavyLiteral || hasHeavyPattern(params))) return true
    if (!this.#isPlanned) return false
    if (this.#weight === null || (this.#weight.scans && performance.now() - this.#weighedMs > BELIEVED_MS))
      this.#weigh()
    const { steps, loops } = this.#weight!
    return steps > MAX_STEPS && !(hasLimit && loops < 2)
  }

  #weigh(): void {
    this.#weighedMs = performance.now()
    this.#weight = weightOf(this.#sql, this.#plan(), (table) => this.#rowsOf(table))
  }

  #plan(): PlanLine[] {
    try {
      const explain = this.#database.prepare(`EXPLAIN QUERY PLAN ${this.#sql}`)
      return explain.all(this.#nulls) as PlanLine[]
    } catch {
      // The schema is locked at the moment, or the statement is wrong: running it says so.
      return []
    }
  }

  /** Between the first and the last row id there is room for so many. Two lookups, not a count. */
  #rowsOf(table: string): number | null {
    const name = `"${table.replaceAll('"', '""')}"`
    const ask = (sql: string) => Number(this.#database.prepare(sql).pluck().get() ?? 0)
    try {
      return ask(`SELECT (SELECT max(rowid) FROM ${name}) - (SELECT min(rowid) FROM ${name}) + 1`)
    } catch {
      try {
        return ask(`SELECT count(*) FROM (SELECT 1 FROM ${name} LIMIT ${MAX_COUNTED})`)
      } catch {
        return null
      }
    }
  }
}
