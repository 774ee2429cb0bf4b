import { HOLE } from './literal.ts'

/**
 * - `word`: a keyword or an unquoted name
 * - `name`: a quoted name; `text` is what is between the quotes
 * - `hole`: a word of which a part is only known at run time
 * - `comment`: `text` is what stands after `--`, or between the slashes' stars
 * - `mark`: one character of anything else
 */
export interface SqlToken {
  kind: 'word' | 'name' | 'hole' | 'string' | 'number' | 'placeholder' | 'comment' | 'mark'
  text: string
  offset: number
}

const WORD_START = new RegExp(`[\\p{L}_${HOLE}]`, 'u')
const WORD = new RegExp(`[\\p{L}\\p{N}_$${HOLE}]+`, 'uy')
const NUMBER = /(?:0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)/y
const DOLLAR_QUOTE = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy
const PLACEHOLDER = /\$[0-9]+|\?[0-9]*/y

/**
 * Splits SQL of PostgreSQL and SQLite into tokens, blanks left out. Never throws: what is not closed goes on to the end.
 * Source: PostgreSQL manual 4.1 (lexical structure), sqlite.org/lang_keywords.html (`[name]`, `` `name` ``)
 */
export function tokenizeSql(sql: string): SqlToken[] {
  const tokens: SqlToken[] = []
  let at = 0
  while (at < sql.length) {
    const char = sql[at]!
    if (/\s/.test(char)) {
      at += 1
      continue
    }
    const token = readToken(sql, at, tokens.at(-1))
    tokens.push({ kind: token.kind, text: token.text, offset: at })
    at = token.end
  }
  return tokens
}

interface Read {
  kind: SqlToken['kind']
  text: string
  end: number
}

function readToken(sql: string, at: number, previous: SqlToken | undefined): Read {
  const char = sql[at]!
  const pair = sql.slice(at, at + 2)
  if (pair === '--') return lineComment(sql, at)
  if (pair === '/*') return blockComment(sql, at)
  if (char === "'") return quoted(sql, at, "'", 'string', isEscapeString(sql, at, previous))
  if (char === '"' || char === '`') return quoted(sql, at, char, 'name', false)
  if (char === '[' && !isSubscript(sql, at, previous)) return bracketed(sql, at)
  if (char === '$') {
    const tag = matchAt(DOLLAR_QUOTE, sql, at)
    if (tag) return dollarQuoted(sql, at, tag)
  }
  const placeholder = matchAt(PLACEHOLDER, sql, at)
  if (placeholder) return { kind: 'placeholder', text: placeholder, end: at + placeholder.length }
  const number = matchAt(NUMBER, sql, at)
  if (number) return { kind: 'number', text: number, end: at + number.length }
  const word = WORD_START.test(String.fromCodePoint(sql.codePointAt(at)!)) ? matchAt(WORD, sql, at) : undefined
  if (word) return { kind: word.includes(HOLE) ? 'hole' : 'word', text: word, end: at + word.length }
  return { kind: 'mark', text: char, end: at + 1 }
}

function lineComment(sql: string, at: number): Read {
  const lineEnd = sql.indexOf('\n', at)
  const end = lineEnd === -1 ? sql.length : lineEnd
  return { kind: 'comment', text: sql.slice(at + 2, end), end }
}

/** Nested, as the standard and PostgreSQL have it. */
function blockComment(sql: string, at: number): Read {
  let depth = 1
  let end = at + 2
  while (end < sql.length && depth > 0) {
    const pair = sql.slice(end, end + 2)
    if (pair === '/*') depth += 1
    if (pair === '*/') depth -= 1
    end += pair === '/*' || pair === '*/' ? 2 : 1
  }
  return { kind: 'comment', text: sql.slice(at + 2, depth === 0 ? end - 2 : end), end }
}

/** A doubled quote stands for itself; in an `E'…'` string a backslash takes the next character with it. */
function quoted(sql: string, at: number, quote: string, kind: 'string' | 'name', backslash: boolean): Read {
  let text = ''
  let end = at + 1
  while (end < sql.length) {
    if (backslash && sql[end] === '\\') {
      text += sql.slice(end, end + 2)
      end += 2
    } else if (sql[end] !== quote) {
      text += sql[end]
      end += 1
    } else if (sql[end + 1] === quote) {
      text += quote
      end += 2
    } else return { kind, text, end: end + 1 }
  }
  return { kind, text, end }
}

function isEscapeString(sql: string, at: number, previous: SqlToken | undefined): boolean {
  return previous?.kind === 'word' && /^e$/i.test(previous.text) && sql[at - 1] === previous.text
}

/** `tags[1]`, `"tags"[1]`, `f(x)[1]`, `ARRAY [1]`; a bracket elsewhere quotes a name. */
function isSubscript(sql: string, at: number, previous: SqlToken | undefined): boolean {
  if (!previous) return false
  if (previous.kind === 'word' && /^array$/i.test(previous.text)) return true
  return (
    /[\p{L}\p{N}_$"\])]/u.test(sql[at - 1] ?? '') ||
    (previous.kind === 'mark' && '[,'.includes(previous.text) && isNested(sql, at))
  )
}

/** `[[1, 2], [3, 4]]`: what follows an opening bracket or a comma is a list when it starts with a value. */
function isNested(sql: string, at: number): boolean {
  return /^\[\s*(?:[0-9'$[]|-)/.test(sql.slice(at, at + 32))
}

function bracketed(sql: string, at: number): Read {
  const close = sql.indexOf(']', at)
  const end = close === -1 ? sql.length : close
  return { kind: 'name', text: sql.slice(at + 1, end), end: Math.min(end + 1, sql.length) }
}

function dollarQuoted(sql: string, at: number, tag: string): Read {
  const close = sql.indexOf(tag, at + tag.length)
  const end = close === -1 ? sql.length : close
  return { kind: 'string', text: sql.slice(at + tag.length, end), end: Math.min(end + tag.length, sql.length) }
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}
