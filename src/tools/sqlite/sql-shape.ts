import { countParameters, type Parameters } from '../../stores/sql/parameters.ts'
import { SQLITE_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'

/** Facts about a statement that SQLite itself does not report. */
export interface SqlShape extends Parameters {
  /** The first word, in upper case. */
  command: string
  /** A placeholder that is not `$n`, or null. */
  foreignPlaceholder: string | null
  /** The same with `?` for each placeholder; null where one occurs twice, which SQLite then takes for two values. */
  byPlace: { sql: string; order: readonly number[] | null } | null
}

const NUMBERED = /^\$([1-9]\d{0,4})$/

/** Reads the shape of one statement that SQLite has prepared. */
export function shapeOf(sql: string): SqlShape {
  let command = ''
  let foreignPlaceholder: string | null = null
  const numbers: number[] = []
  let text = ''
  let end = 0
  const tokens = new SqlTokens(sql, SQLITE_DIALECT)
  while (tokens.next()) {
    if (tokens.kind === 'word') command ||= tokens.text.toUpperCase()
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
  return { command, foreignPlaceholder, byPlace, ...countParameters(used) }
}
