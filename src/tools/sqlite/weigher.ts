// Which statements may run for long, by their plan.
import type Database from 'better-sqlite3'
import { readable } from '../../core/errors/description.ts'
import { isHeavyPattern, type SqlShape } from '../../stores/sql/statement.ts'
import { SQLITE_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'

/** Steps of nested loops that a statement may take in its lane: about 0.1 s. */
const MAX_STEPS = 1_000_000
/** Milliseconds for which the weight of a statement that scans tables is believed: they grow. */
const BELIEVED_MS = 10_000
/** Statements that have a plan. */
const PLANNED = new Set(['SELECT', 'WITH', 'VALUES', 'INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'CREATE'])
/** Rows of a table without row ids are counted up to here. */
const MAX_COUNTED = MAX_STEPS + 1

/** The table of an index that is made: such a statement has no plan. */
const NEW_INDEX = /^\s*CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\sON\s+"?(\w+)/is
/** Each row of its table is read, sorted and written. */
const STEPS_OF_INDEX = 10

/** Says of one statement whether it may run for longer than a lane should stand still. */
export class Weigher {
  readonly #database: Database.Database
  readonly #sql: string
  readonly #shape: SqlShape
  readonly #isPlanned: boolean
  readonly #indexed: string | undefined
  /** Values do not change the plan. */
  readonly #nulls: Record<number, null> = {}
  #weight: PlanWeight | null = null
  #weighedMs = 0

  constructor(database: Database.Database, sql: string, shape: SqlShape) {
    this.#database = database
    this.#sql = sql
    this.#shape = shape
    this.#isPlanned = PLANNED.has(shape.command)
    this.#indexed = shape.command === 'CREATE' ? NEW_INDEX.exec(sql)?.[1] : undefined
    for (let n = 1; n <= shape.parameterCount; n++) this.#nulls[n] = null
  }

  isHeavy(params: readonly unknown[]): boolean {
    const { matchesPatterns, hasHeavyLiteral, hasLimit } = this.#shape
    if (matchesPatterns && (hasHeavyLiteral || params.some(isHeavyPattern))) return true
    if (!this.#isPlanned) return false
    if (this.#indexed !== undefined) return STEPS_OF_INDEX * (this.#rowsOf(this.#indexed) ?? 0) > MAX_STEPS
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
    const lines = readable(() => this.#database.prepare(`EXPLAIN QUERY PLAN ${this.#sql}`).all(this.#nulls))
    // None where the schema is locked at the moment, or the statement is wrong: running it says so.
    return (lines ?? []) as PlanLine[]
  }

  /** Between the first and the last row id there is room for so many. Two lookups, not a count. */
  #rowsOf(table: string): number | null {
    const name = `"${table.replaceAll('"', '""')}"`
    const ask = (sql: string) => Number(this.#database.prepare(sql).pluck().get() ?? 0)
    return (
      readable(() => ask(`SELECT (SELECT max(rowid) FROM ${name}) - (SELECT min(rowid) FROM ${name}) + 1`)) ??
      readable(() => ask(`SELECT count(*) FROM (SELECT 1 FROM ${name} LIMIT ${MAX_COUNTED})`)) ??
      null
    )
  }
}

/** Assumed for a table function such as `json_each`. */
const FUNCTION_ROWS = 2_000

/** One line of `EXPLAIN QUERY PLAN`. https://sqlite.org/eqp.html */
interface PlanLine {
  readonly id: number
  readonly parent: number
  readonly detail: string
}

interface PlanWeight {
  /** Most steps that the loops of the statement can take, as far as its plan tells: infinite for a recursion. */
  readonly steps: number
  /** How many scans are nested in each other at most. */
  readonly loops: number
  /** It reads tables from one end to the other, so that its weight grows with them. */
  readonly scans: boolean
}

/**
 * Bounds the steps of a statement by its plan. Tables that are read through an index count as one row: a lookup is bounded by what it
 * finds. Programs of triggers are not in the plan.
 * @param rowsOf most rows that a table has; null when there is no such table
 */
function weightOf(sql: string, lines: readonly PlanLine[], rowsOf: (table: string) => number | null): PlanWeight {
  let scans = false
  let loops = 0
  let isRecursive = false
  const children = new Map<number, PlanLine[]>()
  for (const line of lines) children.set(line.parent, [...(children.get(line.parent) ?? []), line])

  const stepsOf = (parent: number): number => {
    /** Results of subqueries that run once, by name. */
    const results = new Map<string, number>()
    let nested = 1
    let beside = 0
    let scansHere = 0
    for (const { id, detail } of children.get(parent) ?? []) {
      if (detail.startsWith('RECURSIVE STEP')) isRecursive = true
      const named = /^(?:CO-ROUTINE|MATERIALIZE) (.+)$/.exec(detail)?.[1]
      const scanned = /^SCAN (.+?)(?: USING .*| VIRTUAL TABLE .*| LEFT-JOIN.*)?$/.exec(detail)?.[1]
      if (scanned !== undefined) {
        const constant = /^(?:CONSTANT ROW|(\d+)-ROW VALUES CLAUSE|(\d+) CONSTANT ROWS)$/.exec(scanned)
        if (constant === null) {
          scans = true
          scansHere++
        }
        if (constant !== null) nested *= Number(constant[1] ?? constant[2] ?? 1)
        else if (detail.includes(' VIRTUAL TABLE ')) nested *= FUNCTION_ROWS
        else nested *= Math.max(1, results.get(scanned) ?? rowsBehind(sql, scanned, rowsOf))
      } else if (named !== undefined) {
        const steps = stepsOf(id)
        results.set(named, steps)
        beside = Math.max(beside, steps)
      } else if (detail.startsWith('CORRELATED ')) {
        nested *= Math.max(1, stepsOf(id))
        scansHere++
      } else beside = Math.max(beside, stepsOf(id))
    }
    loops = Math.max(loops, scansHere)
    return Math.max(nested, beside)
  }
  const steps = stepsOf(0)
  return isRecursive ? { steps: Number.POSITIVE_INFINITY, loops: 2, scans: false } : { steps, loops, scans }
}

/** Rows of the table that the plan calls by its name or by its alias; infinite when it cannot be found. */
function rowsBehind(sql: string, name: string, rowsOf: (table: string) => number | null): number {
  const own = rowsOf(name)
  if (own !== null) return own
  let most = -1
  let [before, last] = ['', '']
  const tokens = new SqlTokens(sql, SQLITE_DIALECT)
  while (tokens.next()) {
    if (tokens.kind === 'comment') continue
    const { text } = tokens
    if (text === name) {
      const table = last.toUpperCase() === 'AS' ? before : last
      most = Math.max(most, rowsOf(table) ?? -1)
    }
    before = last
    last = text
  }
  return most < 0 ? Number.POSITIVE_INFINITY : most
}
