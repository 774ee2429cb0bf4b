import type { Db } from '../contracts/db.ts'
import type { CallDetails, SpanAttributes } from '../contracts/tracing.ts'

/** The contract's methods of an implementation, `healthCheck` among them, and nothing else of it. */
export const dbApi = (db: Db): Db => ({
  query: (sql, params) => db.query(sql, params),
  queryOne: (sql, params) => db.queryOne(sql, params),
  execute: (sql, params) => db.execute(sql, params),
  transaction: (work) => db.transaction(work),
  healthCheck: () => db.healthCheck(),
})

/** A text that stands in the statement is a value all the same. */
const TEXT_LITERAL = /'(?:[^']|'')*'/g
const FIRST_WORD = /^\s*([A-Za-z]+)/

/**
 * What a span tells of a call: the statement with its placeholders, never a parameter.
 * Source: OpenTelemetry semantic conventions for database client spans.
 */
export function describeDbCall(args: readonly unknown[], server: SpanAttributes): CallDetails {
  const [sql] = args
  if (typeof sql !== 'string') return { kind: 'client', attributes: server }
  const text = sql.replace(TEXT_LITERAL, "'?'")
  const operation = FIRST_WORD.exec(text)?.[1]
  const attributes: SpanAttributes = { ...server, 'db.query.text': text }
  if (operation !== undefined) attributes['db.operation.name'] = operation.toUpperCase()
  return { kind: 'client', attributes }
}
