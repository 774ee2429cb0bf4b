import { countParameters, type Parameters } from '../../stores/sql/parameters.ts'
import { POSTGRES_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'

/** Facts about a statement that the tool needs before the server gets it. */
export interface SqlShape extends Parameters {
  /** The first word, in upper case; empty when there is none. */
  command: string
  /** The word after it. */
  second: string
  /** There is a `?` that may be meant as a placeholder. */
  hasQuestionMark: boolean
}

export function shapeOf(sql: string): SqlShape {
  let command = ''
  let second = ''
  const used = new Set<number>()
  let hasQuestionMark = false
  const tokens = new SqlTokens(sql, POSTGRES_DIALECT)
  while (tokens.next()) {
    if (tokens.kind === 'placeholder') {
      if (sql[tokens.start] === '?') hasQuestionMark = true
      else used.add(Number(tokens.text.slice(1)))
    } else if (tokens.kind === 'word' && second === '') {
      if (command === '') command = tokens.text.toUpperCase()
      else second = tokens.text.toUpperCase()
    }
  }
  return { command, second, hasQuestionMark, ...countParameters(used) }
}

const CONTROL = new Set(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'])
// These change the connection, which another statement uses next.
const SESSION = new Set(['RESET', 'LISTEN', 'UNLISTEN', 'DISCARD', 'PREPARE', 'DEALLOCATE', 'DECLARE'])

/** True for a statement that begins or ends a transaction or a part of one. */
export function isTransactionControl({ command, second }: Pick<SqlShape, 'command' | 'second'>): boolean {
  return CONTROL.has(command) || (command === 'PREPARE' && second === 'TRANSACTION')
}

/** True for a statement whose effect on the connection would outlive it. `SET LOCAL` and `SET TRANSACTION` end with the transaction. */
export function isSessionControl({ command, second }: Pick<SqlShape, 'command' | 'second'>): boolean {
  return SESSION.has(command) || (command === 'SET' && !['LOCAL', 'TRANSACTION', 'CONSTRAINTS'].includes(second))
}

/** The first statement of a script that would begin or end a transaction, or null. `BEGIN ATOMIC … END` of a function's body does not. */
export function transactionControlIn(script: string): string | null {
  let statement: string[] = []
  /** Open blocks of a body: `BEGIN ATOMIC` and `CASE`, each with its `END`. */
  let depth = 0
  const tokens = new SqlTokens(script, POSTGRES_DIALECT)
  while (tokens.next()) {
    if (tokens.kind !== 'word' && tokens.kind !== 'placeholder' && tokens.kind !== 'mark') continue
    const word = tokens.text.toUpperCase()
    if (tokens.kind === 'mark') {
      if (word === ';' && depth === 0) statement = []
      continue
    }
    if (statement.length > 0 && statement.at(-1) === 'BEGIN' && word === 'ATOMIC') depth = 1
    else if (depth > 0 && word === 'CASE') depth++
    else if (depth > 0 && word === 'END') depth--
    statement.push(word)
    const [command = '', second = ''] = statement
    if (statement.length === 1 && command !== 'PREPARE' && isTransactionControl({ command, second })) return command
    if (statement.length === 2 && isTransactionControl({ command, second })) return `${command} ${second}`
  }
  return null
}
