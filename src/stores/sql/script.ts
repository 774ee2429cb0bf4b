// The statements of a script, and those among them that control a transaction.

import { DbError } from '../../core/errors/catalogue.ts'
import { type SqlDialect, SqlTokens } from './tokens.ts'

/** A statement of a script, by the offsets of its first character and of what follows its last one. */
interface ScriptPart {
  start: number
  end: number
}

/** What may have a body: there a semicolon ends a statement of the body. */
const HAS_BODY = /^(?:TRIGGER|FUNCTION|PROCEDURE)$/
/** What may stand between `CREATE` and that. */
const OF_CREATE = /^(?:CREATE|OR|REPLACE|TEMP|TEMPORARY|CONSTRAINT)$/

/**
 * Where the statements of a script begin and end, for a message about one of them. The database itself splits what is run. Comments before a
 * statement are no part of it.
 */
export function statementsIn(script: string, dialect: SqlDialect): ScriptPart[] {
  const parts: ScriptPart[] = []
  let start = -1
  let end = 0
  /** Only words of `CREATE …` so far. */
  let isHead = false
  let hasBody = false
  /** Open blocks of a body: `BEGIN` and `CASE`, each with its `END`. */
  let depth = 0
  const tokens = new SqlTokens(script, dialect)
  while (tokens.next()) {
    const { kind, text } = tokens
    if (kind === 'comment') continue
    if (kind === 'mark' && text === ';' && depth === 0) {
      if (start >= 0) parts.push({ start, end })
      start = -1
      continue
    }
    const word = kind === 'word' ? text.toUpperCase() : ''
    if (start < 0) {
      start = tokens.start
      isHead = word === 'CREATE'
      hasBody = false
    }
    hasBody ||= isHead && HAS_BODY.test(word)
    isHead &&= OF_CREATE.test(word)
    if (hasBody && (word === 'BEGIN' || (depth > 0 && word === 'CASE'))) depth++
    else if (depth > 0 && word === 'END') depth--
    end = tokens.end
  }
  if (start >= 0) parts.push({ start, end })
  return parts
}

const CONTROL = new Set(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'])

/** True for a statement that begins or ends a transaction or a part of one, by its first two words in upper case. */
export function isTransactionControl(command: string, second: string): boolean {
  return CONTROL.has(command) || (command === 'PREPARE' && second === 'TRANSACTION')
}

/** What a script's first statement that begins or ends a transaction begins with; null: it has none. */
export function controlIn(script: string, dialect: SqlDialect): string | null {
  for (const { start, end } of statementsIn(script, dialect)) {
    const tokens = new SqlTokens(script.slice(start, end), dialect)
    const [command, second] = [nextWord(tokens), nextWord(tokens)]
    if (isTransactionControl(command, second)) return CONTROL.has(command) ? command : `${command} ${second}`
  }
  return null
}

/** In upper case; empty for what is no word. */
function nextWord(tokens: SqlTokens): string {
  while (tokens.next()) if (tokens.kind !== 'comment') return tokens.kind === 'word' ? tokens.text.toUpperCase() : ''
  return ''
}

/** @param script of a migration @throws DbError `other` when it begins or ends a transaction */
export function refuseControl(script: string, dialect: SqlDialect): void {
  const command = controlIn(script, dialect)
  if (command === null) return
  throw new DbError('other', `it contains ${command}, but a migration runs in a transaction already`)
}
