import { ANY_DIALECT } from '../../stores/sql/dialect.ts'
import { type SqlToken, tokenizeSql } from '../../stores/sql/tokens.ts'
import { HOLE } from './literal.ts'

/** A table that a statement names. */
export interface TableMention {
  /** In lower case, without the schemas `public` and `main`. */
  table: string
  /**
   * `create` makes it (table or view), `drop` takes it away (by its name at least), `reference` is the target of a foreign key,
   * `write` changes it or what is in it, `read` is anything else that needs it to be there.
   */
  role: 'create' | 'drop' | 'reference' | 'write' | 'read'
  offset: number
}

/** Every table that the statements name; names of common table expressions, aliases and functions left out. */
export function tablesOf(sql: string): TableMention[] {
  const tokens = tokenizeSql(sql, ANY_DIALECT).filter((token) => token.kind !== 'comment')
  return new TableScanner(tokens, (body, offset) =>
    // What stands between the quotes begins somewhere behind the first one; a doubled quote in it moves the rest by one.
    tablesOf(body).map((mention) => ({
      ...mention,
      offset: Math.max(offset, sql.indexOf(body, offset)) + mention.offset,
    })),
  ).scan()
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
/** What may stand behind the ON of GRANT instead of a table. */
const NOT_TABLES = 'SCHEMA DATABASE SEQUENCE FUNCTION ROUTINE LANGUAGE TYPE DOMAIN ALL TABLESPACE'.split(' ')
const UPDATE_CONFLICT = new Set('OR ROLLBACK ABORT REPLACE FAIL IGNORE'.split(' '))

class TableScanner {
  readonly #tokens: readonly SqlToken[]
  readonly #closing: Map<number, number>
  readonly #found: TableMention[] = []
  readonly #routine: (body: string, offset: number) => TableMention[]

  /** @param routine the tables of the body of a function, which is a string in the statement that makes it */
  constructor(tokens: readonly SqlToken[], routine: (body: string, offset: number) => TableMention[]) {
    this.#tokens = tokens
    this.#routine = routine
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
      } else if (
        level.expectsTable &&
        this.#isName(at) &&
        !this.#isWord(at, 'LATERAL', 'ONLY', 'SELECT', 'VALUES') &&
        !(this.#isWord(at, 'ROWS') && this.#isWord(at + 1, 'FROM'))
      ) {
        level.expectsTable = false
        at = this.#table(at, 'read', level.ctes, true)
      } else if (token.kind === 'word') at = this.#word(at, token.text.toUpperCase(), level)
      else if (token.kind === 'string' && level.verbs.has('ROUTINE') && this.#isWord(at - 1, 'AS', 'DO')) {
        this.#found.push(...this.#routine(token.text, token.offset))
        at += 1
      } else {
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
        if (this.#isWord(at - 1, 'DELETE')) {
          return this.#table(this.#skip(at + 1, BEFORE_TABLE), 'write', level.ctes, false)
        }
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
        return this.#table(at + 1, 'write', level.ctes, false)
      case 'UPDATE':
        return this.#update(at, level)
      case 'REFERENCES':
        return this.#table(at + 1, 'reference', level.ctes, false)
      case 'INHERITS':
        return this.#isMark(at + 1, '(') ? this.#tableList(at + 2, level, 'read') : at + 1
      case 'LIKE':
        // CREATE TABLE t (LIKE u); elsewhere it compares texts.
        if (!this.#isMark(at - 1, '(') || !this.#isName(at + 1)) return at + 1
        return this.#table(at + 1, 'read', level.ctes, false)
      case 'PARTITION':
        if (this.#isWord(at - 1, 'ATTACH', 'DETACH')) return this.#table(at + 1, 'read', level.ctes, false)
        return this.#isWord(at + 1, 'OF') ? this.#table(at + 2, 'read', level.ctes, false) : at + 1
      case 'COPY':
      case 'LOCK':
        if (level.verbs.size > 0 || !this.#isName(at + 1) || this.#isWord(at + 1, 'TABLE')) return at + 1
        return this.#tableList(at + 1, level, 'read')
      case 'GRANT':
      case 'REVOKE':
        level.verbs.add('ATTACHED')
        return at + 1
      case 'FUNCTION':
      case 'PROCEDURE':
        if (hasAny(level.verbs, 'CREATE')) level.verbs.add('ROUTINE')
        return at + 1
      case 'DO':
        if (this.#tokens[at + 1]?.kind === 'string') level.verbs.add('ROUTINE')
        return at + 1
      case 'TRUNCATE':
        if (this.#isWord(at + 1, 'TABLE')) return at + 1
        return this.#tableList(at + 1, level, 'write')
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
      case 'POLICY':
        if (hasAny(level.verbs, 'CREATE', 'ALTER', 'DROP') && !this.#isWord(at - 1, 'ON')) level.verbs.add('ATTACHED')
        return at + 1
      case 'ON': {
        if (!level.verbs.delete('ATTACHED')) return at + 1
        const first = this.#skip(this.#isWord(at + 1, 'TABLE') ? at + 2 : at + 1, BEFORE_TABLE)
        return this.#isWord(first, ...NOT_TABLES) ? first : this.#tableList(first, level, 'write')
      }
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
    return this.#table(this.#skip(this.#skip(at + 1, UPDATE_CONFLICT), BEFORE_TABLE), 'write', level.ctes, false)
  }

  #afterTable(at: number, level: Level): number {
    const first = this.#skip(at + 1, BEFORE_TABLE)
    // A query that is TABLE t stands behind another one, behind AS, or alone.
    const isQuery =
      this.#isWord(at - 1, 'AS', 'UNION', 'INTERSECT', 'EXCEPT', 'ALL', 'DISTINCT') || this.#isMark(at - 1, '(')
    if (isQuery) return this.#table(first, 'read', level.ctes, false)
    if (hasAny(level.verbs, 'CREATE')) return this.#table(first, this.#createRole(at), level.ctes, false)
    if (hasAny(level.verbs, 'DROP')) return this.#tableList(first, level, 'drop')
    if (!hasAny(level.verbs, 'ALTER')) return this.#table(first, 'read', level.ctes, false)
    const end = this.#endOfName(first)
    const isRenamed = this.#isWord(end, 'RENAME') && this.#isWord(end + 1, 'TO')
    if (!isRenamed) return this.#table(first, 'write', level.ctes, false)
    this.#table(first, 'drop', level.ctes, false)
    return this.#table(end + 2, 'create', level.ctes, false, this.#schemaOf(first))
  }

  #tableList(at: number, level: Level, role: 'read' | 'write' | 'drop'): number {
    let next = this.#table(this.#skip(at, BEFORE_TABLE), role, level.ctes, false)
    while (this.#isMark(next, ',')) next = this.#table(this.#skip(next + 1, BEFORE_TABLE), role, level.ctes, false)
    return next
  }

  /** Behind the name at `at`, however many parts it has. */
  #endOfName(at: number): number {
    let next = at + 1
    while (this.#isMark(next, '.') && this.#isName(next + 1)) next += 2
    return next
  }

  /** What a renamed table keeps. */
  #schemaOf(at: number): string[] {
    return this.#isMark(at + 1, '.') ? [this.#tokens[at]!.text.toLowerCase()] : []
  }

  /** A temporary table is the session's own: nobody else meets it. */
  #createRole(at: number): 'create' | undefined {
    for (let back = at - 1; back >= 0 && !this.#isMark(back, ';') && !this.#isWord(back, 'CREATE'); back--) {
      if (this.#isWord(back, 'TEMP', 'TEMPORARY')) return undefined
    }
    return 'create'
  }

  /** Notes the name at `at`. @returns where to go on */
  #table(
    at: number,
    role: TableMention['role'] | undefined,
    ctes: TableNames,
    mayBeFunction: boolean,
    schema: readonly string[] = [],
  ): number {
    if (!this.#isName(at)) return at
    const parts: string[] = [...schema]
    let next = at
    for (;;) {
      const token = this.#tokens[next]!
      parts.push(token.text.includes(HOLE) ? '' : token.text.toLowerCase())
      next += 1
      if (!this.#isMark(next, '.') || !this.#isName(next + 1)) break
      next += 1
    }
    const isFunction = mayBeFunction && this.#isMark(next, '(')
    const isCte = parts.length === 1 && ctes.has(parts[0]!)
    // A temporary table is the session's own: nobody else meets it.
    const isTemporary = parts.length > 1 && /^(?:temp|pg_temp)$/.test(parts[0]!)
    if (role && !isFunction && !isCte && !isTemporary && !parts.includes('')) {
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
    return kind === 'word' || kind === 'name'
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
