// SQL token by token, by dialect.

/** The token rules in which the databases differ. */
export interface SqlDialect {
  /** A block comment may hold another one. */
  nestedComments: boolean
  /** `$$ … $$` and `$tag$ … $tag$` are strings. */
  dollarQuotes: boolean
  /** In `E'…'` a backslash escapes the next character. */
  escapeStrings: boolean
  /** `` `name` `` is a quoted name. */
  backticks: boolean
  /** `[name]` is a quoted name: always, never, or unless the bracket opens a subscript or a list of values. */
  bracketNames: 'always' | 'never' | 'unless-subscript'
  /** Placeholders: `$1`, `?` and `?1` alone, or also `:name`, `@name`, `$name` and `#name`. */
  namedPlaceholders: boolean
}

/** Source: PostgreSQL manual, 4.1. Relies on `standard_conforming_strings`, which the connection turns on. */
export const POSTGRES_DIALECT: SqlDialect = {
  nestedComments: true,
  dollarQuotes: true,
  escapeStrings: true,
  backticks: false,
  bracketNames: 'never',
  namedPlaceholders: false,
}

/** Source: https://sqlite.org/src/file/src/tokenize.c */
export const SQLITE_DIALECT: SqlDialect = {
  nestedComments: false,
  dollarQuotes: false,
  escapeStrings: false,
  backticks: true,
  bracketNames: 'always',
  namedPlaceholders: true,
}

/** The rules of both, for a reader that does not know the database. */
export const ANY_DIALECT: SqlDialect = { ...POSTGRES_DIALECT, backticks: true, bracketNames: 'unless-subscript' }

/**
 * - `word`: a keyword or an unquoted name
 * - `name`: a quoted name
 * - `mark`: one character of anything else
 */
type SqlTokenKind = 'word' | 'name' | 'string' | 'number' | 'placeholder' | 'comment' | 'mark'

const NUMBER = /0[xXoObB][0-9a-fA-F_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y
const DOLLAR_TAG = /\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/y
const COMMENT_EDGE = /\/\*|\*\//g
const LIST_START = /\[\s*[0-9'$[-]/y

/** Classes of ASCII characters; 0 stands for any other. Both databases take all characters beyond ASCII for letters. */
const LETTER = 1
const DIGIT = 2
const BLANK = 3
const CLASSES = new Uint8Array(128)
for (const char of 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_') CLASSES[char.charCodeAt(0)] = LETTER
for (const char of '0123456789') CLASSES[char.charCodeAt(0)] = DIGIT
for (const char of ' \t\n\v\f\r') CLASSES[char.charCodeAt(0)] = BLANK
const DOLLAR = 36
const BACKSLASH = 92
const BYTE_ORDER_MARK = 0xfeff

function classAt(sql: string, at: number): number {
  const code = sql.charCodeAt(at)
  if (code < 128) return CLASSES[code]!
  return code === BYTE_ORDER_MARK ? BLANK : LETTER
}

/**
 * Reads SQL token by token, without blanks. Never throws: a comment, a string or a name that is not closed runs to the end of the
 * text. One object moves over the text instead of making one for each token: statements are read while a request waits.
 */
export class SqlTokens {
  /** Kind of the current token, which is the one that `next` found last. */
  kind: SqlTokenKind = 'mark'
  /** Offset of the current token's first character. */
  start = 0
  /** Offset behind the current token's last character. */
  end = 0
  readonly #sql: string
  readonly #dialect: SqlDialect
  #textStart = 0
  #textEnd = 0
  /** The quote that the text contains doubled for itself; empty for a token without quotes. */
  #quote = ''

  constructor(sql: string, dialect: SqlDialect) {
    this.#sql = sql
    this.#dialect = dialect
  }

  /** The content of a string, a quoted name or a comment; else the token as it stands in the SQL. */
  get text(): string {
    const text = this.#sql.slice(this.#textStart, this.#textEnd)
    const quote = this.#quote
    return quote === '' ? text : text.replaceAll(quote + quote, quote)
  }

  /** Moves to the next token. @returns false when there is none */
  next(): boolean {
    const sql = this.#sql
    let at = this.end
    while (at < sql.length && classAt(sql, at) === BLANK) at++
    if (at === sql.length) return false
    this.#quote = ''
    const charClass = classAt(sql, at)
    if (charClass === LETTER) this.#word(at)
    else if (charClass === DIGIT) this.#number(at)
    else this.#special(at)
    return true
  }

  #word(at: number): void {
    this.#token('word', at, this.#wordEnd(at + 1))
  }

  /** The end of the letters, digits and dollar signs from there on. */
  #wordEnd(from: number): number {
    const sql = this.#sql
    let at = from
    while (at < sql.length) {
      const charClass = classAt(sql, at)
      if (charClass !== LETTER && charClass !== DIGIT && sql.charCodeAt(at) !== DOLLAR) break
      at++
    }
    return at
  }

  #number(at: number): void {
    this.#token('number', at, at + lengthAt(NUMBER, this.#sql, at))
  }

  #special(at: number): void {
    const sql = this.#sql
    const dialect = this.#dialect
    switch (sql[at]) {
      case "'":
        return this.#quoted('string', at, "'", dialect.escapeStrings && this.#isAfterEscapePrefix(at))
      case '"':
        return this.#quoted('name', at, '"', false)
      case '`':
        if (dialect.backticks) return this.#quoted('name', at, '`', false)
        break
      case '[':
        if (this.#opensName(at)) return this.#bracketed(at)
        break
      case '-':
        if (sql[at + 1] === '-') return this.#lineComment(at)
        break
      case '/':
        if (sql[at + 1] === '*') return this.#blockComment(at)
        break
      case '.':
        if (classAt(sql, at + 1) === DIGIT) return this.#number(at)
        break
      case '$':
        return this.#dollar(at)
      case '?':
        return this.#token(
          'placeholder',
          at,
          dialect.namedPlaceholders ? this.#wordEnd(at + 1) : this.#digitsEnd(at + 1),
        )
      case ':':
      case '@':
      case '#':
        if (dialect.namedPlaceholders) return this.#token('placeholder', at, this.#wordEnd(at + 1))
        break
    }
    this.#token('mark', at, at + 1)
  }

  /** A placeholder, a string between dollar signs, or a dollar sign alone. */
  #dollar(at: number): void {
    const { dollarQuotes, namedPlaceholders } = this.#dialect
    if (namedPlaceholders) return this.#token('placeholder', at, this.#wordEnd(at + 1))
    const digitsEnd = this.#digitsEnd(at + 1)
    if (digitsEnd > at + 1) return this.#token('placeholder', at, digitsEnd)
    const tagLength = dollarQuotes ? lengthAt(DOLLAR_TAG, this.#sql, at) : 0
    if (tagLength > 0) this.#dollarQuoted(at, tagLength)
    else this.#token('mark', at, at + 1)
  }

  #token(kind: SqlTokenKind, start: number, end: number, textStart = start, textEnd = end): void {
    this.kind = kind
    this.start = start
    this.end = end
    this.#textStart = textStart
    this.#textEnd = textEnd
  }

  #digitsEnd(from: number): number {
    let at = from
    while (at < this.#sql.length && classAt(this.#sql, at) === DIGIT) at++
    return at
  }

  #lineComment(at: number): void {
    const lineEnd = this.#sql.indexOf('\n', at)
    this.#token('comment', at, lineEnd === -1 ? this.#sql.length : lineEnd, at + 2)
  }

  #blockComment(at: number): void {
    const sql = this.#sql
    const close = this.#dialect.nestedComments ? endOfNestedComment(sql, at) : sql.indexOf('*/', at + 2)
    if (close === -1) this.#token('comment', at, sql.length, at + 2)
    else this.#token('comment', at, close + 2, at + 2, close)
  }

  /** A string or a name in quotes, in which a doubled quote is the quote itself. @param hasEscapes a backslash takes the next character with it */
  #quoted(kind: 'string' | 'name', at: number, quote: string, hasEscapes: boolean): void {
    const sql = this.#sql
    const quoteCode = quote.charCodeAt(0)
    this.#quote = quote
    for (let end = at + 1; end < sql.length; end++) {
      const code = sql.charCodeAt(end)
      if (code === BACKSLASH && hasEscapes) end++
      else if (code !== quoteCode) continue
      else if (sql.charCodeAt(end + 1) === quoteCode) end++
      else return this.#token(kind, at, end + 1, at + 1, end)
    }
    this.#token(kind, at, sql.length, at + 1)
  }

  #bracketed(at: number): void {
    const close = this.#sql.indexOf(']', at)
    if (close === -1) this.#token('name', at, this.#sql.length, at + 1)
    else this.#token('name', at, close + 1, at + 1, close)
  }

  #dollarQuoted(at: number, tagLength: number): void {
    const tag = this.#sql.slice(at, at + tagLength)
    const close = this.#sql.indexOf(tag, at + tagLength)
    if (close === -1) this.#token('string', at, this.#sql.length, at + tagLength)
    else this.#token('string', at, close + tagLength, at + tagLength, close)
  }

  /** The token before is the `E` of `E'…'`. */
  #isAfterEscapePrefix(at: number): boolean {
    if (this.kind !== 'word' || this.end !== at || this.start !== at - 1) return false
    const prefix = this.#sql[this.start]
    return prefix === 'E' || prefix === 'e'
  }

  #opensName(at: number): boolean {
    const { bracketNames } = this.#dialect
    return bracketNames === 'always' || (bracketNames === 'unless-subscript' && !this.#opensSubscript(at))
  }

  /** `tags[1]`, `"tags"[1]`, `f(x)[1]`, `ARRAY [1]`, and the inner brackets of `[[1, 2], [3, 4]]`. */
  #opensSubscript(at: number): boolean {
    if (this.end === 0) return false
    if (this.kind === 'word' && /^array$/i.test(this.text)) return true
    const before = classAt(this.#sql, at - 1)
    if (before === LETTER || before === DIGIT || '$"])'.includes(this.#sql[at - 1]!)) return true
    const isListed = this.kind === 'mark' && '[,'.includes(this.text)
    return isListed && lengthAt(LIST_START, this.#sql, at) > 0
  }
}

export interface SqlToken {
  kind: SqlTokenKind
  text: string
  offset: number
}

/** All tokens of a text, for a reader that looks back and ahead. */
export function tokenizeSql(sql: string, dialect: SqlDialect): SqlToken[] {
  const found: SqlToken[] = []
  const tokens = new SqlTokens(sql, dialect)
  while (tokens.next()) found.push({ kind: tokens.kind, text: tokens.text, offset: tokens.start })
  return found
}

/** Offset of what closes the comment at `start`; -1 when there is none. */
function endOfNestedComment(sql: string, start: number): number {
  let depth = 1
  COMMENT_EDGE.lastIndex = start + 2
  for (let edge = COMMENT_EDGE.exec(sql); edge !== null; edge = COMMENT_EDGE.exec(sql)) {
    depth += edge[0] === '/*' ? 1 : -1
    if (depth === 0) return edge.index
  }
  return -1
}

/** @param pattern sticky */
function lengthAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex - at : 0
}
