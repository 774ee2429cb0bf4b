// What a session of the server must be like.
import type { ToolRuntime } from '../../contracts/tool.ts'
import { TRANSACTION_IDLE_MS } from '../../stores/sql/database.ts'

/** Milliseconds that the server waits longer than the tool itself. It ends transactions of a thread that is blocked. */
const IDLE_GRACE_MS = 5000
/** The setting by which a session is known again. */
export const MARK = 'heddle.session'

type Settings = Pick<ToolRuntime['settings'], 'rdbPooler' | 'rdbSchema' | 'rdbStatementTimeoutMs'>

/** The settings of a session, as statements that set and read them. */
export interface SessionRules {
  readonly pooler: Settings['rdbPooler']
  readonly names: readonly string[]
  /** Sets them in the transaction under way. */
  readonly setLocal: string
  /** The same as one query. */
  readonly localQuery: string
  /** Sets them for the session, after what others have left in it: whoever has set it before finds none of its statements there, and runs none. */
  reset(mark: string): string
  /** Reads them, and the mark. */
  readonly read: string
}

/**
 * What the decoders, the token rules and the promises of the tool rely on, whatever the server, the user or a pooler has set.
 * @param readsByIndex tables that are often empty have an index for each query, and the plans are kept: none may be made to read a whole table
 */
export function sessionRules(
  { rdbPooler, rdbSchema, rdbStatementTimeoutMs }: Settings,
  readsByIndex = false,
): SessionRules {
  const wanted: Record<string, string> = {
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    IntervalStyle: 'postgres',
    bytea_output: 'hex',
    extra_float_digits: '1',
    standard_conforming_strings: 'on',
    client_encoding: 'UTF8',
    // Temporary tables last: they must not stand for others.
    search_path: `"${rdbSchema}",pg_temp`,
    statement_timeout: String(rdbStatementTimeoutMs),
    idle_in_transaction_session_timeout: String(TRANSACTION_IDLE_MS + IDLE_GRACE_MS),
    default_transaction_isolation: 'read committed',
    // Where a whole table is read all the same, its cost is a number that would have the statement compiled.
    ...(readsByIndex ? { enable_seqscan: 'off', jit: 'off' } : {}),
  }
  const names = Object.keys(wanted)
  const setAll = (isLocal: boolean): string =>
    `SELECT ${names.map((name) => `set_config('${name}', '${wanted[name]}', ${isLocal})`).join(', ')}`
  const literalOf = (name: string): string => (name === 'search_path' ? wanted[name]! : `'${wanted[name]}'`)
  return {
    pooler: rdbPooler,
    names,
    setLocal: names.map((name) => `SET LOCAL ${name} = ${literalOf(name)}`).join('; '),
    localQuery: setAll(true),
    reset: (mark) =>
      `RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DEALLOCATE ALL; SET search_path = ${literalOf('search_path')}; PREPARE "${mark}" AS SELECT; SELECT set_config('${MARK}', '${mark}', false); ${setAll(false)}`,
    read: `SELECT current_setting('${MARK}', true), ${names.map((name) => `current_setting('${name}')`).join(', ')}`,
  }
}
