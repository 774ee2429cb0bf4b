import { messageOf, stackOf } from '../../core/errors/description.ts'

/** As SQLite and PostgreSQL say it. */
const MISSING_TABLE = /no such table: (?:main\.)?(\S+)|relation "([^"]+)" does not exist/

const fixFor = (table: string): string =>
  `no applied migration makes the table ${table}: write one (npm run new -- migration <domain>/<name>), or apply what is pending (DB_AUTO_MIGRATE=true npm start -- --boot-tool db)`

/** The log record of an error that a handler has thrown. */
export function faultRecord(
  path: string,
  requestId: string,
  thrown: unknown,
): { message: string; fields: Record<string, unknown> } {
  const fields: Record<string, unknown> = { request_id: requestId, stack: stackOf(thrown) }
  const cause = stackOf(causeOf(thrown))
  if (cause !== undefined) fields.cause = cause
  const table = MISSING_TABLE.exec(messageOf(thrown))?.slice(1).find(Boolean)
  if (table !== undefined) fields.fix = fixFor(table)
  return { message: `${path} failed: ${messageOf(thrown)}`, fields }
}

function causeOf(thrown: unknown): unknown {
  try {
    return (thrown as { cause?: unknown } | null)?.cause
  } catch {
    // Its members cannot be read.
    return undefined
  }
}
