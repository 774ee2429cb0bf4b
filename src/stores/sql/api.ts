import type { Db } from '../../contracts/db.ts'
import type { CallDetails, SpanAttributes } from '../../contracts/tracing.ts'

/** The contract's methods of an implementation, `healthCheck` among them, and nothing else of it. */
export const dbApi = (db: Db): Db => ({
  query: (sql, params) => db.query(sql, params),
  queryOne: (sql, params) => db.queryOne(sql, params),
  execute: (sql, params) => db.execute(sql, params),
  transaction: (work) => db.transaction(work),
  healthCheck: () => db.healthCheck(),
})

/**
 * What stands in a statement as a value, and comments, which may hold one: texts in single quotes, with escapes and between dollars, and
 * numbers that are no placeholder and no part of a name. Names in double quotes stay.
 */
const LITERAL =
  /"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|(?<![\w$.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g
const withoutLiterals = (sql: string): string =>
  sql.replace(LITERAL, (found) => (found.startsWith('"') ? found : /^(?:--|\/\*)/.test(found) ? ' ' : '?'))
const FIRST_WORD = /^\s*([A-Za-z]+)/

/**
 * What a span tells of a call: the statement with its placeholders, never a parameter.
 * Source: OpenTelemetry semantic conventions for database client spans.
 */
export function describeDbCall(args: readonly unknown[], server: SpanAttributes): CallDetails {
  const [sql] = args
  if (typeof sql !== 'string') return { kind: 'client', attributes: server }
  const text = withoutLiterals(sql)
  const operation = FIRST_WORD.exec(text)?.[1]
  const attributes: SpanAttributes = { ...server, 'db.query.text': text }
  if (operation !== undefined) attributes['db.operation.name'] = operation.toUpperCase()
  return { kind: 'client', attributes }
}
