/** What the tool must know of a statement beyond what SQLite itself tells. */
export interface SqlShape {
  /** The first word, in upper case. */
  command: string
  /** The highest `$n`. */
  parameterCount: number
  /** A placeholder that is not `$n`, or null. */
  foreignPlaceholder: string | null
  /** A number below `parameterCount` that no placeholder has, or null. */
  missingParameter: number | null
}

// SQLite's own token rules (https://sqlite.org/src/file/src/tokenize.c), as far as they hide or form a placeholder.
// An unclosed comment or string runs to the end of the text, and a `$` inside of an identifier belongs to it.
const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|[\p{L}_\u0080-\uffff][\w$\u0080-\uffff]*|[$:@?#][\w$\u0080-\uffff]*|\d[\w.]*|;/gu
const WORD = /^[\p{L}_]/u
const NUMBERED = /^\$([1-9]\d{0,4})$/

/** Reads the shape of one statement that SQLite has prepared. */
export function shapeOf(sql: string): SqlShape {
  let command = ''
  let foreignPlaceholder: string | null = null
  const used = new Set<number>()
  for (const [token] of sql.matchAll(TOKEN)) {
    if (WORD.test(token)) {
      command ||= token.toUpperCase()
    } else if ('$:@?#'.includes(token[0]!)) {
      const number = NUMBERED.exec(token)?.[1]
      if (number === undefined) foreignPlaceholder ??= token
      else used.add(Number(number))
    }
  }
  const parameterCount = Math.max(0, ...used)
  let missingParameter: number | null = null
  for (let n = 1; n < parameterCount && missingParameter === null; n++) if (!used.has(n)) missingParameter = n
  return { command, parameterCount, foreignPlaceholder, missingParameter }
}

const CONTROL = new Set(['BEGIN', 'COMMIT', 'END', 'ROLLBACK', 'SAVEPOINT', 'RELEASE'])

/** True for a statement that begins or ends a transaction or a part of one. */
export function isTransactionControl(command: string): boolean {
  return CONTROL.has(command)
}

/**
 * The first statement of a script that would begin or end a transaction, or null.
 * The `BEGIN … END` of a trigger's body is none.
 */
export function transactionControlIn(script: string): string | null {
  const statement: string[] = []
  let inTrigger = false
  let caseDepth = 0
  for (const [token] of script.matchAll(TOKEN)) {
    if (token === ';') {
      // Inside of a trigger a statement's end is the script's statement's end only after `END`.
      if (!inTrigger || (statement.at(-1) === 'END' && caseDepth === 0)) {
        inTrigger = false
        caseDepth = 0
        statement.length = 0
      } else {
        statement.push(';')
      }
      continue
    }
    if (!WORD.test(token)) {
      if (!/^(?:--|\/\*)/.test(token)) statement.push('?')
      continue
    }
    const word = token.toUpperCase()
    if (statement.length === 0 && isTransactionControl(word)) return word
    if (inTrigger && word === 'CASE') caseDepth++
    if (inTrigger && word === 'END' && caseDepth > 0) {
      caseDepth--
      statement.push('?')
      continue
    }
    statement.push(word)
    if (word === 'TRIGGER' && /^CREATE( TEMP| TEMPORARY)? TRIGGER$/.test(statement.join(' '))) inTrigger = true
  }
  return null
}
