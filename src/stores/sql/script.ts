import { type SqlDialect, SqlTokens } from './tokens.ts'

/** A statement of a script, by the offsets of its first character and of what follows its last one. */
export interface ScriptPart {
  start: number
  end: number
}

/** What a script's statement may have a body of: there a semicolon ends a statement of the body. */
const HAS_BODY = /^(?:TRIGGER|FUNCTION|PROCEDURE)$/

/**
 * Where the statements of a script begin and end, for a message about one of them. The database itself splits what is run. Comments before a
 * statement are no part of it.
 */
export function statementsIn(script: string, dialect: SqlDialect): ScriptPart[] {
  const parts: ScriptPart[] = []
  let start = -1
  let end = 0
  let isCreate = false
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
      isCreate = word === 'CREATE'
      hasBody = false
    }
    if (isCreate && depth === 0 && HAS_BODY.test(word)) hasBody = true
    if (hasBody && (word === 'BEGIN' || (depth > 0 && word === 'CASE'))) depth++
    else if (depth > 0 && word === 'END') depth--
    end = tokens.end
  }
  if (start >= 0) parts.push({ start, end })
  return parts
}
