import { DbError } from '../../core/errors/db-error.ts'
import { messageOf } from '../../core/errors/description.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { showPlace } from '../../core/errors/source-place.ts'
import { type MigrationSource, scriptFix } from './script-fix.ts'

/** A script that has failed, with the statement that did. */
export class ScriptFault extends DbError {
  /** Where in the script: the offset of a character. */
  readonly offset: number
  /** The statement as it stands there. */
  readonly statement: string

  constructor(error: DbError, offset: number, statement: string) {
    super(error.kind, error.message, { cause: error.cause })
    this.offset = offset
    this.statement = statement
  }
}

/** A statement is looked for by running the script again up to it, unless that would take longer than this. Milliseconds. */
export const REPLAY_MAX_MS = 5000
/** Characters of a statement that are shown. */
const STATEMENT_MAX = 200

/**
 * What a person needs to fix a script: the message, the file, the line with a mark under the column, the statement, and the fix.
 * @param what for example `Migration shop/001_orders failed and was rolled back`
 * @param sources all migrations, among which may be the one that has to come first
 */
export function scriptFaultText(
  what: string,
  thrown: unknown,
  { path, sql }: { path: string; sql: string },
  sources: readonly MigrationSource[] = [],
): string {
  const message = messageOf(thrown)
  const fix = `  Fix: ${scriptFix(message, sources)}`
  if (!(thrown instanceof ScriptFault)) return [`${what}: ${message} (${shown(path)})`, fix].join('\n')
  const before = sql.slice(0, thrown.offset).split('\n')
  const place = { file: path, line: before.length, column: before.at(-1)!.length + 1 }
  const statement = thrown.statement.replace(/\s+/g, ' ')
  const cut = statement.length > STATEMENT_MAX ? `${statement.slice(0, STATEMENT_MAX)}…` : statement
  return [
    `${what}: ${message} in line ${place.line} (${shown(path)})`,
    ...showPlace(place).map((line) => `  ${line}`),
    `  statement: ${cut}`,
    fix,
  ].join('\n')
}
