import { type SqlToken, tokenizeSql } from './sql-tokens.ts'

/** A table that a statement names. */
export interface TableMention {
  /** In lower case, without the schemas `public` and `main`. */
  table: string
  /** `create` makes it (table or view), `use` needs it to be there. */
  role: 'create' | 'use'
  offset: number
}

/** Every table that the statements name; names of common table expressions, aliases and functions left out. */
export function tablesOf(sql: string): TableMention[] {
  const tokens = tokenizeSql(sql).filter((token) => token.kind !== 'comment')
  return new TableScanner(tokens).scan()
}

type TableNames = ReadonlySet<string>

/** What is known of the statement, or of the part of it between two parentheses. */
interface Level {
  /** The statement's first verbs: without SELECT, DELETE or UPDATE a FROM belongs to a function. */
  verbs: Set<string>
  /** True between FROM and the next clause: a comma then introduces a table. */
  inFrom: boolean
  /** True when the next name is a table of a FROM list. */
  expectsTable: boolean
  ctes: TableNames
}

const CLAUSE_ENDS = new Set(
  'WHERE GROUP ORDER HAVING LIMIT OFFSET UNION INTERSECT EXCEPT WINDOW SET RETURNING FETCH VALUES WHEN'.split(' '),
)
/** What stands before the UPDATE of a statement, not of a clause such as ON CONFLICT DO UPDATE or FOR UPDATE. */
const BEFORE_STATEMENT = new Set('; ( ) BEGIN THEN ELSE EXPLAIN ANALYZE VERBOSE PLAN AS ATOMIC'.split(' '))
const BEFORE_TABLE = new Set('IF NOT EXISTS ONLY CONCURRENTLY'.split(' '))
const UPDATE_CONFLICT = new Set('OR ROLLBACK ABORT REPLACE FAIL IGNORE'.split(' '))

class TableScanner {
  readonly #tokens: readonly SqlToken[]
  readonly #closing: Map<number, number>
  readonly #found: TableMention[] = []

  constructor(tokens: readonly SqlToken[]) {
    this.#tokens = tokens
    this.#closing = matchParentheses(tokens)
  }

  scan(): TableMention[] {
    this.#level(0, this.#tokens.length, new Set(), false)
    return this.#found.sort((a, b) => a.offset - b.offset)
  }

  /** @param isFromList the tokens are a parenthesized part of a FROM list, for example `(a JOIN b ON …)` */
  #level(start: number, end: number, outerCtes: TableNames, isFromList: boolean): void {
    const fresh = (): Level => ({ verbs: new Set(), inFrom: false, expectsTable: false, ctes: outerCtes })
    let level: Level = { ...fresh(), inFrom: isFromList, expectsTable: isFromList }
    for (let at = start; at < end; ) {
      const token = this.#tokens[at]!
      if (token.kind === 'mark' && token.text === ';') {
        level = fresh()
        at += 1
      } else if (token.kind === 'mark' && token.text === '(') at = this.#group(at, end, level)
      else if (token.kind === 'mark' && token.text === ',') {
        level.expectsTable = level.inFrom
        at += 1
      } else if (level.expectsTable && this.#isName(at) && !this.#isWord(at, 'LATERAL', 'ONLY', 'SELECT', 'VALUES')) {
        level.expectsTable = false
        at = this.#table(at, 'use', level.ctes, true)
      } else if (token.kind === 'word') at = this.#word(at, token.text.toUpperCase(), level)
      else {
        level.expectsTable = false
        at += 1
      }
    }
  }

  /** @returns where to go on, after the closing parenthesis */
  #group(open: number, end: number, level: Level): number {
    const close = Math.min(this.#closing.get(open) ?? end, end)
    const isQuery = this.#isWord(open + 1, 'SELECT', 'WITH', 'VALUES', 'INSERT', 'UPDATE', 'DELETE')
    this.#level(open + 1, close, level.ctes, level.expectsTable && !isQuery)
    level.expectsTable = false
    return close + 1
  }

  #word(at: number, word: string, level: Level): number {
    if (CLAUSE_ENDS.has(word)) {
      level.inFrom = false
      level.expectsTable = false
    }
    switch (word) {
      case 'WITH':
        return this.#commonTables(at, level)
      case 'SELECT':
      case 'DELETE':
      case 'INSERT':
      case 'REPLACE':
      case 'MERGE':
        level.verbs.add(word)
        level.inFrom = false
        return at + 1
      case 'FROM':
        if (this.#isWord(at - 1, 'DISTINCT') || !hasAny(level.verbs, 'SELECT', 'DELETE', 'UPDATE')) return at + 1
        level.inFrom = true
        level.expectsTable = true
        return at + 1
      case 'JOIN':
        level.expectsTable = true
        return at + 1
      case 'USING':
        // DELETE … USING a, b and MERGE … USING a; elsewhere it names columns or an index method.
        if (!hasAny(level.verbs, 'DELETE', 'MERGE') || this.#isJoinColumns(at)) return at + 1
        level.inFrom = true
        level.expectsTable = true
        return at + 1
      case 'INTO':
        if (!hasAny(level.verbs, 'INSERT', 'REPLACE', 'MERGE')) return at + 1
        return this.#table(at + 1, 'use', level.ctes, false)
      case 'UPDATE':
        return this.#update(at, level)
      case 'REFERENCES':
        return this.#table(at + 1, 'use', level.ctes, false)
      case 'TRUNCATE':
        if (this.#isWord(at + 1, 'TABLE')) return at + 1
        return this.#tableList(at + 1, level)
      case 'TABLE':
        return this.#afterTable(at, level)
      case 'VIEW':
        if (!hasAny(level.verbs, 'CREATE', 'ALTER', 'DROP') && !this.#isWord(at - 1, 'MATERIALIZED')) return at + 1
        return this.#afterTable(at, level)
      case 'CREATE':
      case 'ALTER':
      case 'DROP':
        level.verbs.add(word)
        return at + 1
      case 'INDEX':
      case 'TRIGGER':
        if (hasAny(level.verbs, 'CREATE') && !this.#isWord(at - 1, 'ON')) level.verbs.add('ATTACHED')
        return at + 1
      case 'ON':
        if (!level.verbs.delete('ATTACHED')) return at + 1
        return this.#table(this.#skip(at + 1, BEFORE_TABLE), 'use', level.ctes, false)
      default:
        return at + 1
    }
  }

  /** `WITH [RECURSIVE] name [(columns)] AS (query), …`: a name hides the table of that name from what follows it. */
  #commonTables(at: number, level: Level): number {
    const recursive = this.#isWord(at + 1, 'RECURSIVE')
    const heads: Array<{ name: string; open: number; close: number }> = []
    let next = at + (recursive ? 2 : 1)
    for (;;) {
      const name = this.#tokens[next]
      if (!name || !this.#isName(next)) break
      let query = next + 1
      if (this.#isMark(query, '(')) query = (this.#closing.get(query) ?? query) + 1
      if (!this.#isWord(query, 'AS')) break
      query = this.#skip(query + 1, new Set(['NOT', 'MATERIALIZED']))
      const close = this.#closing.get(query)
      if (close === undefined) break
      heads.push({ name: name.text.toLowerCase(), open: query, close })
      next = close + 1
      if (!this.#isMark(next, ',')) break
      next += 1
    }
    // Something else that begins with WITH, for example WITH TIME ZONE.
    if (heads.length === 0) return at + 1
    const visible = new Set(level.ctes)
    if (recursive) for (const { name } of heads) visible.add(name)
    for (const { name, open, close } of heads) {
      this.#level(open + 1, close, new Set(visible), false)
      visible.add(name)
    }
    level.ctes = visible
    return heads.at(-1)!.close + 1
  }

  #update(at: number, level: Level): number {
    const before = this.#tokens[at - 1]
    if (this.#isWord(at + 1, 'SET')) return at + 1
    if (before && !BEFORE_STATEMENT.has(before.text.toUpperCase())) return at + 1
    level.verbs.add('UPDATE')
    return this.#table(this.#skip(this.#skip(at + 1, UPDATE_CONFLICT), BEFORE_TABLE), 'use', level.ctes, false)
  }

  #afterTable(at: number, level: Level): number {
    const first = this.#skip(at + 1, BEFORE_TABLE)
    if (hasAny(level.verbs, 'CREATE')) return this.#table(first, this.#createRole(at), level.ctes, false)
    if (hasAny(level.verbs, 'DROP')) return this.#tableList(first, level)
    const next = this.#table(first, 'use', level.ctes, false)
    const renamed = this.#isWord(next, 'RENAME') && this.#isWord(next + 1, 'TO')
    return renamed ? this.#table(next + 2, 'create', level.ctes, false) : next
  }

  #tableList(at: number, level: Level): number {
    let next = this.#table(this.#skip(at, BEFORE_TABLE), 'use', level.ctes, false)
    while (this.#isMark(next, ',')) next = this.#table(this.#skip(next + 1, BEFORE_TABLE), 'use', level.ctes, false)
    return next
  }

  /** A temporary table is the session's own: nobody else meets it. */
  #createRole(at: number): 'create' | undefined {
    for (let back = at - 1; back >= 0 && !this.#isMark(back, ';') && !this.#isWord(back, 'CREATE'); back--) {
      if (this.#isWord(back, 'TEMP', 'TEMPORARY')) return undefined
    }
    return 'create'
  }

  /** Notes the name at `at`. @returns where to go on */
  #table(at: number, role: TableMention['role'] | undefined, ctes: TableNames, mayBeFunction: boolean): number {
    if (!this.#isName(at)) return at
    const parts: string[] = []
    let next = at
    for (;;) {
      const token = this.#tokens[next]!
      parts.push(token.kind === 'hole' ? '' : token.text.toLowerCase())
      next += 1
      if (!this.#isMark(next, '.') || !this.#isName(next + 1)) break
      next += 1
    }
    const isFunction = mayBeFunction && this.#isMark(next, '(')
    const isCte = parts.length === 1 && ctes.has(parts[0]!)
    if (role && !isFunction && !isCte && !parts.includes('')) {
      const schemas = parts.slice(0, -1).filter((schema) => schema !== 'public' && schema !== 'main')
      this.#found.push({ table: [...schemas, parts.at(-1)!].join('.'), role, offset: this.#tokens[at]!.offset })
    }
    return next
  }

  /** `JOIN b USING (id)` within a DELETE: a list of columns follows, not a query. */
  #isJoinColumns(at: number): boolean {
    return this.#isMark(at + 1, '(') && !this.#isWord(at + 2, 'SELECT', 'WITH', 'VALUES')
  }

  #skip(at: number, words: ReadonlySet<string>): number {
    let next = at
    while (this.#tokens[next]?.kind === 'word' && words.has(this.#tokens[next]!.text.toUpperCase())) next += 1
    return next
  }

  #isName(at: number): boolean {
    const kind = this.#tokens[at]?.kind
    return kind === 'word' || kind === 'name' || kind === 'hole'
  }

  #isWord(at: number, ...words: string[]): boolean {
    const token = this.#tokens[at]
    return token?.kind === 'word' && words.includes(token.text.toUpperCase())
  }

  #isMark(at: number, text: string): boolean {
    const token = this.#tokens[at]
    return token?.kind === 'mark' && token.text === text
  }
}

/** Position of each opening parenthesis → position of the one that closes it. */
function matchParentheses(tokens: readonly SqlToken[]): Map<number, number> {
  const closing = new Map<number, number>()
  const open: number[] = []
  tokens.forEach((token, at) => {
    if (token.kind !== 'mark') return
    if (token.text === '(') open.push(at)
    const start = token.text === ')' ? open.pop() : undefined
    if (start !== undefined) closing.set(start, at)
  })
  return closing
}

function hasAny(set: ReadonlySet<string>, ...words: string[]): boolean {
  return words.some((word) => set.has(word))
}
