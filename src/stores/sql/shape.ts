// What the text of a statement tells, before a database gets it.
import { countParameters, type Parameters } from './parameters.ts'
import { type SqlDialect, SqlTokens } from './tokens.ts'

export interface SqlShape extends Parameters {
  /** The first word, in upper case; empty when there is none. */
  command: string
  /** The word after it. */
  second: string
  /** A placeholder that is not `$n`, or null. */
  foreignPlaceholder: string | null
  /** The same with `?` for each placeholder; null where one occurs twice, which SQLite then takes for two values. */
  byPlace: { sql: string; order: readonly number[] | null } | null
  /** It has LIKE or GLOB. */
  matchesPatterns: boolean
  /** A pattern stands in the statement itself that could keep them busy for long. */
  hasHeavyLiteral: boolean
  /** A LIMIT ends a scan of one table early. */
  hasLimit: boolean
}

const NUMBERED = /^\$([1-9]\d{0,4})$/

/** Reads the shape of one statement. */
export function shapeOf(sql: string, dialect: SqlDialect): SqlShape {
  const shape = { command: '', second: '', matchesPatterns: false, hasHeavyLiteral: false, hasLimit: false }
  let foreignPlaceholder: string | null = null
  const numbers: number[] = []
  let text = ''
  let end = 0
  const tokens = new SqlTokens(sql, dialect)
  while (tokens.next()) {
    if (tokens.kind === 'word') {
      const word = tokens.text.toUpperCase()
      if (shape.command === '') shape.command = word
      else shape.second ||= word
      if (word === 'LIKE' || word === 'GLOB') shape.matchesPatterns = true
      else if (word === 'LIMIT') shape.hasLimit = true
    } else if (tokens.kind === 'string') shape.hasHeavyLiteral ||= isHeavyPattern(tokens.text)
    else if (tokens.kind === 'placeholder') {
      const number = NUMBERED.exec(tokens.text)?.[1]
      if (number === undefined) foreignPlaceholder ??= tokens.text
      else numbers.push(Number(number))
      text += `${sql.slice(end, tokens.start)}?`
      end = tokens.end
    }
  }
  const used = new Set(numbers)
  const isInOrder = numbers.every((number, place) => number === place + 1)
  const order = isInOrder ? null : numbers.map((number) => number - 1)
  const byPlace = used.size === numbers.length ? { sql: text + sql.slice(end), order } : null
  return { ...shape, foreignPlaceholder, byPlace, ...countParameters(used) }
}

/** LIKE and GLOB take as many steps as text and pattern have characters, multiplied, and nothing can interrupt one of them. */
const MAX_PATTERN_CHARS = 256

/** True for a pattern that could keep LIKE or GLOB busy for long. */
export function isHeavyPattern(value: unknown): boolean {
  return typeof value === 'string' && value.length > MAX_PATTERN_CHARS && /[%*]/.test(value)
}
