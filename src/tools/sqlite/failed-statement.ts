import type { DbError } from '../../core/errors/db-error.ts'
import { messageOf } from '../../core/errors/description.ts'
import { ScriptFault } from '../../stores/migrations/script-fault.ts'
import { statementsIn } from '../../stores/sql/script.ts'
import { SQLITE_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'
import type { Connection } from './connection.ts'

/** The name that a message of SQLite is about. */
const NAMED =
  /^near "((?:[^"]|"(?!:))+)"|^(?:no such|unknown|duplicate) [\w ]+: "?([\w.]+)|unrecognized token: "(.+)"|^(?:table|index|view|trigger) "?([\w.]+)|has no column named (\w+)/

/**
 * The statement of a script that has failed: SQLite does not tell. The transaction is rolled back, and the script is run again, one statement after
 * another, in a new one, which the caller rolls back.
 * @returns null when none fails in the same way
 */
export function failedStatement(connection: Connection, script: string, error: DbError): ScriptFault | null {
  try {
    connection.rollback()
    connection.begin()
    for (const { start, end } of statementsIn(script, SQLITE_DIALECT)) {
      const statement = script.slice(start, end)
      const fault = faultOf(() => connection.script(statement))
      if (fault === null) continue
      return fault === error.message
        ? new ScriptFault(error, start + faultOffset(connection, statement, fault), statement)
        : null
    }
  } catch {
    // Another process has the lock meanwhile: the fault stays without its line.
  }
  return null
}

/** Offset of the token in a statement at which it fails; 0, its beginning, where that is not known. */
function faultOffset(connection: Connection, statement: string, fault: string): number {
  const name = NAMED.exec(fault)?.slice(1).find(Boolean)
  if (name === undefined) return 0
  const starts: { start: number; end: number }[] = []
  const tokens = new SqlTokens(statement, SQLITE_DIALECT)
  while (tokens.next()) {
    const isNamed =
      tokens.text.toLowerCase() === name.toLowerCase() || statement.slice(tokens.start, tokens.end) === name
    if (tokens.kind !== 'comment' && isNamed) starts.push({ start: tokens.start, end: tokens.end })
  }
  // What comes before a syntax error can be parsed: the first occurrence with which it cannot is the one.
  const broken = fault.startsWith('near ')
    ? starts.find(({ end }) => faultOf(() => connection.statement(statement.slice(0, end))) === fault)
    : undefined
  return (broken ?? starts[0])?.start ?? 0
}

function faultOf(work: () => unknown): string | null {
  try {
    work()
    return null
  } catch (thrown) {
    return messageOf(thrown)
  }
}
