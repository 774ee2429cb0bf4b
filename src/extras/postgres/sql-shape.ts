/** What the tool must know of a statement before the server sees it. */
export interface SqlShape {
  /** The first word, in upper case; empty when there is none. */
  command: string
  /** The word after it. */
  second: string
  /** The highest `$n`. */
  parameterCount: number
  /** A number below `parameterCount` that no placeholder has, or null. */
  missingParameter: number | null
  /** There is a `?` that may be meant as a placeholder. */
  hasQuestionMark: boolean
}

// PostgreSQL's own token rules (manual, 4.1), as far as they hide or form a placeholder. `standard_conforming_strings` is on: see
// connection-config.ts. What is not closed runs to the end of the text. Block comments nest, which an expression cannot follow.
const TOKEN =
  /--[^\n]*|\/\*|[eE]'(?:[^'\\]|''|\\[\s\S])*'?|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|\$(?:[\p{L}_\u0080-\uffff][\p{L}\p{N}_\u0080-\uffff]*)?\$|\$\d+|[\p{L}_\u0080-\uffff][\p{L}\p{N}_$\u0080-\uffff]*|\d[\w.]*|[?;]/gu
const COMMENT_EDGE = /\/\*|\*\//g
const WORD = /^[\p{L}_\u0080-\uffff][^']*$/u

/** Words, placeholders, `?` and `;`, without what stands in comments, strings and quoted names. */
function* tokensOf(sql: string): Generator<string> {
  TOKEN.lastIndex = 0
  let at = 0
  for (;;) {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(sql)
    if (match === null) return
    const [token] = match
    at = match.index + token.length
    if (token === '/*') at = endOfComment(sql, at)
    else if (/^\$.*\$$/.test(token)) at = endOf(sql, token, at)
    else if (token[0] === '$' || token === '?' || token === ';' || WORD.test(token)) yield token
  }
}

function endOfComment(sql: string, from: number): number {
  let depth = 1
  COMMENT_EDGE.lastIndex = from
  for (let edge = COMMENT_EDGE.exec(sql); edge !== null; edge = COMMENT_EDGE.exec(sql)) {
    depth += edge[0] === '/*' ? 1 : -1
    if (depth === 0) return COMMENT_EDGE.lastIndex
  }
  return sql.length
}

function endOf(sql: string, tag: string, from: number): number {
  const close = sql.indexOf(tag, from)
  return close < 0 ? sql.length : close + tag.length
}

export function shapeOf(sql: string): SqlShape {
  const words: string[] = []
  const used = new Set<number>()
  let hasQuestionMark = false
  for (const token of tokensOf(sql)) {
    if (token[0] === '$') used.add(Number(token.slice(1)))
    else if (token === '?') hasQuestionMark = true
    else if (token !== ';' && words.length < 2) words.push(token.toUpperCase())
  }
  let parameterCount = 0
  for (const number of used) parameterCount = Math.max(parameterCount, number)
  let missingParameter: number | null = null
  for (let n = 1; n < parameterCount && missingParameter === null; n++) if (!used.has(n)) missingParameter = n
  return { command: words[0] ?? '', second: words[1] ?? '', parameterCount, missingParameter, hasQuestionMark }
}

const CONTROL = new Set(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'])
// They change a connection beyond the statement, and the connection is another statement's next.
const SESSION = new Set(['RESET', 'LISTEN', 'UNLISTEN', 'DISCARD', 'PREPARE', 'DEALLOCATE', 'DECLARE'])

/** True for a statement that begins or ends a transaction or a part of one. */
export function isTransactionControl({ command, second }: Pick<SqlShape, 'command' | 'second'>): boolean {
  return CONTROL.has(command) || (command === 'PREPARE' && second === 'TRANSACTION')
}

/** True for a statement that would leave its mark on the connection. `SET LOCAL` and `SET TRANSACTION` end with the transaction. */
export function isSessionControl({ command, second }: Pick<SqlShape, 'command' | 'second'>): boolean {
  return SESSION.has(command) || (command === 'SET' && !['LOCAL', 'TRANSACTION', 'CONSTRAINTS'].includes(second))
}

/** The first statement of a script that would begin or end a transaction, or null. `BEGIN ATOMIC … END` of a function's body is none. */
export function transactionControlIn(script: string): string | null {
  let statement: string[] = []
  /** Open blocks of a body: `BEGIN ATOMIC` and `CASE`, each with its `END`. */
  let depth = 0
  for (const token of tokensOf(script)) {
    const word = token.toUpperCase()
    if (token === ';') {
      if (depth === 0) statement = []
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
