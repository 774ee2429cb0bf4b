// What a statement would leave behind in the session: the next one on it is another request's.
import { POSTGRES_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'

/** Most statements have none of these words. */
const SUSPICIOUS = /set_config|advisory_lock|temp/i
const SESSION_LOCK = /^pg_(?:try_)?advisory_lock(?:_shared)?$/
/** Words that may stand between CREATE, or INTO, and TEMP. */
const BEFORE_TEMP: readonly string[] = ['create', 'into', 'or', 'replace', 'global', 'local']

const XACT_LOCKS = 'pg_advisory_xact_lock or pg_try_advisory_xact_lock in a transaction'

/** @returns what is to be sent in its place; null when it leaves nothing, as far as its text tells */
export function leftInSession(sql: string): { what: string; instead: string } | null {
  if (!SUSPICIOUS.test(sql)) return null
  const words = tokensOf(sql)
  const isDropped = /\bon\s+commit\s+drop\b/i.test(sql)
  for (const [at, word] of words.entries()) {
    const isCall = words[at + 1] === '('
    if (isCall && SESSION_LOCK.test(word)) return { what: word, instead: XACT_LOCKS }
    if (isCall && word === 'set_config' && lastArgument(words, at + 2) !== 'true')
      return { what: 'set_config', instead: 'set_config(…, …, true), or SET LOCAL, in a transaction' }
    const isTemporary = (word === 'temp' || word === 'temporary') && BEFORE_TEMP.includes(words[at - 1] ?? '')
    if (isTemporary && !isDropped)
      return { what: 'A temporary table', instead: 'CREATE TEMP TABLE … ON COMMIT DROP in a transaction' }
  }
  return null
}

/** Words and names in lower case, marks as they are; `'` for a string. */
function tokensOf(sql: string): string[] {
  const words: string[] = []
  const tokens = new SqlTokens(sql, POSTGRES_DIALECT)
  while (tokens.next()) {
    if (tokens.kind === 'string') words.push("'")
    else if (tokens.kind !== 'comment') words.push(tokens.text.toLowerCase())
  }
  return words
}

/** The only word of the last argument; empty when it is longer. @param from behind the opening parenthesis */
function lastArgument(words: readonly string[], from: number): string {
  let depth = 1
  let argument: string[] = []
  for (let at = from; at < words.length; at++) {
    const word = words[at]!
    if (word === '(') depth++
    else if (word === ')') depth--
    if (depth === 0) break
    if (word === ',' && depth === 1) argument = []
    else argument.push(word)
  }
  return argument.length === 1 ? argument[0]! : ''
}
