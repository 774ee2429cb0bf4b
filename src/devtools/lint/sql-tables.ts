import { ANY_DIALECT, type SqlToken, tokenizeSql } from '../../stores/sql/tokens.ts'
import { SqlTokenList } from './sql-token-list.ts'
import { HOLE } from './texts.ts'

/** A table that a statement names. */
export interface TableMention {
  /** In lower case, without the schemas `public` and `main`. */
  table: string
  /**
   * `create` makes the table or view, `drop` removes it or its name, `reference` makes it the target of a foreign key,
   * `write` changes its structure or its rows, `read` is any other use that needs it to exist.
   */
  role: 'create' | 'drop' | 'reference' | 'write' | 'read'
  offset: number
}

/** Every table that the statements name, without the names of common table expressions, aliases and functions. */
export function tablesOf(sql: string): TableMention[] {
  const tokens = tokenizeSql(sql, ANY_DIALECT).filter((token) => token.kind !== 'comment')
  return new TableScanner(tokens, (body, offset) =>
    // The body begins somewhere behind its opening quote. Each doubled quote in it moves what follows by one character.
    tablesOf(body).map((mention) => ({
      ...mention,
      offset: Math.max(offset, sql.indexOf(body, offset)) + mention.offset,
    })),
  ).scan()
}

type TableNames = ReadonlySet<string>

/** The state of the scan within one statement, or within one pair of parentheses. */
interface Level {
  /**
   * The verbs of the statement so far: without SELECT, DELETE or UPDATE a FROM belongs to a function. `ATTACHED` means that an ON
   * with tables is to come, `ROUTINE` that a string may be the body of a function.
   */
  verbs: Set<string>
  /** True between FROM and the next clause: a comma then introduces a table. */
  inFrom: boolean
  /** True when the next name is a table of a FROM list. */
  expectsTable: boolean
  /** Common table expressions, whose names hide tables. */
  ctes: TableNames
}

const CLAUSE_ENDS = new Set(
  'WHERE GROUP ORDER HAVING LIMIT OFFSET UNION INTERSECT EXCEPT WINDOW SET RETURNING FETCH VALUES WHEN'.split(' '),
)
/** The tokens before an UPDATE that begins a statement; behind others it is a clause such as ON CONFLICT DO UPDATE or FOR UPDATE. */
const BEFORE_STATEMENT = new Set('; ( ) BEGIN THEN ELSE EXPLAIN ANALYZE VERBOSE PLAN AS ATOMIC'.split(' '))
const BEFORE_TABLE = new Set('IF NOT EXISTS ONLY CONCURRENTLY'.split(' '))
/** Words behind the ON of GRANT that introduce something else than a table. */
const NOT_TABLES = 'SCHEMA DATABASE SEQUENCE FUNCTION ROUTINE LANGUAGE TYPE DOMAIN ALL TABLESPACE'.split(' ')
const UPDATE_CONFLICT = new Set('OR ROLLBACK ABORT REPLACE FAIL IGNORE'.split(' '))

class TableScanner {
  readonly #tokens: SqlTokenList
  readonly #found: TableMention[] = []
  readonly #routine: (body: string, offset: number) => TableMention[]

  /** @param routine finds the tables in the body of a function, which is a string in the statement that creates the function */
  constructor(tokens: readonly SqlToken[], routine: (body: string, offset: number) => TableMention[]) {
    this.#tokens = new SqlTokenList(tokens)
    this.#routine = routine
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
      const token = this.#tokens.at(at)!
      if (token.kind === 'mark' && token.text === ';') {
        level = fresh()
        at += 1
      } else if (token.kind === 'mark' && token.text === '(') at = this.#group(at, end, level)
      else if (token.kind === 'mark' && token.text === ',') {
        level.expectsTable = level.inFrom
        at += 1
      } else if (
        level.expectsTable &&
        this.#tokens.isName(at) &&
        !this.#tokens.isWord(at, 'LATERAL', 'ONLY', 'SELECT', 'VALUES') &&
        !(this.#tokens.isWord(at, 'ROWS') && this.#tokens.isWord(at + 1, 'FROM'))
      ) {
        level.expectsTable = false
        at = this.#table(at, 'read', level.ctes, { mayBeFunction: true })
      } else if (token.kind === 'word') at = this.#word(at, token.text.toUpperCase(), level)
      else if (token.kind === 'string' && level.verbs.has('ROUTINE') && this.#tokens.isWord(at - 1, 'AS', 'DO')) {
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
    const close = Math.min(this.#tokens.closing(open) ?? end, end)
    const isQuery = this.#tokens.isWord(open + 1, 'SELECT', 'WITH', 'VALUES', 'INSERT', 'UPDATE', 'DELETE')
    this.#level(open + 1, close, level.ctes, level.expectsTable && !isQuery)
    level.expectsTable = false
    return close + 1
  }

  /** @returns where to go on */
  #word(at: number, word: string, level: Level): number {
    if (CLAUSE_ENDS.has(word)) {
      level.inFrom = false
      level.expectsTable = false
    }
    return this.#queryWord(at, word, level) ?? this.#schemaWord(at, word, level) ?? at + 1
  }

  /** A word of a query or of a statement that changes rows. @returns where to go on; undefined for any other word */
  #queryWord(at: number, word: string, level: Level): number | undefined {
    const tokens = this.#tokens
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
        return this.#from(at, level)
      case 'JOIN':
        level.expectsTable = true
        return at + 1
      case 'USING':
        // DELETE … USING a, b and MERGE … USING a; elsewhere it names columns or an index method.
        if (hasAny(level.verbs, 'DELETE', 'MERGE') && !this.#isJoinColumns(at)) expectTables(level)
        return at + 1
      case 'INTO':
        if (!hasAny(level.verbs, 'INSERT', 'REPLACE', 'MERGE')) return at + 1
        return this.#table(at + 1, 'write', level.ctes)
      case 'UPDATE':
        return this.#update(at, level)
      case 'COPY':
      case 'LOCK':
        if (level.verbs.size > 0 || !tokens.isName(at + 1) || tokens.isWord(at + 1, 'TABLE')) return at + 1
        return this.#tableList(at + 1, level, 'read')
      case 'TRUNCATE':
        return tokens.isWord(at + 1, 'TABLE') ? at + 1 : this.#tableList(at + 1, level, 'write')
    }
  }

  /** A word of a statement that changes the schema or its permissions. @returns where to go on; undefined for any other word */
  #schemaWord(at: number, word: string, level: Level): number | undefined {
    const tokens = this.#tokens
    switch (word) {
      case 'CREATE':
      case 'ALTER':
      case 'DROP':
        level.verbs.add(word)
        return at + 1
      case 'TABLE':
        return this.#afterTable(at, level)
      case 'VIEW':
        if (!hasAny(level.verbs, 'CREATE', 'ALTER', 'DROP') && !tokens.isWord(at - 1, 'MATERIALIZED')) return at + 1
        return this.#afterTable(at, level)
      case 'REFERENCES':
        return this.#table(at + 1, 'reference', level.ctes)
      case 'INHERITS':
        return tokens.isMark(at + 1, '(') ? this.#tableList(at + 2, level, 'read') : at + 1
      case 'LIKE':
        // CREATE TABLE t (LIKE u); elsewhere it compares texts.
        return tokens.isMark(at - 1, '(') && tokens.isName(at + 1) ? this.#table(at + 1, 'read', level.ctes) : at + 1
      case 'PARTITION':
        if (tokens.isWord(at - 1, 'ATTACH', 'DETACH')) return this.#table(at + 1, 'read', level.ctes)
        return tokens.isWord(at + 1, 'OF') ? this.#table(at + 2, 'read', level.ctes) : at + 1
      case 'INDEX':
      case 'TRIGGER':
      case 'POLICY':
        if (hasAny(level.verbs, 'CREATE', 'ALTER', 'DROP') && !tokens.isWord(at - 1, 'ON')) level.verbs.add('ATTACHED')
        return at + 1
      case 'GRANT':
      case 'REVOKE':
        level.verbs.add('ATTACHED')
        return at + 1
      case 'ON':
        return this.#on(at, level)
      case 'FUNCTION':
      case 'PROCEDURE':
        if (hasAny(level.verbs, 'CREATE')) level.verbs.add('ROUTINE')
        return at + 1
      case 'DO':
        if (tokens.at(at + 1)?.kind === 'string') level.verbs.add('ROUTINE')
        return at + 1
    }
  }

  #from(at: number, level: Level): number {
    const tokens = this.#tokens
    if (tokens.isWord(at - 1, 'DELETE')) return this.#table(tokens.skip(at + 1, BEFORE_TABLE), 'write', level.ctes)
    const isClause = !tokens.isWord(at - 1, 'DISTINCT') && hasAny(level.verbs, 'SELECT', 'DELETE', 'UPDATE')
    if (isClause) expectTables(level)
    return at + 1
  }

  /** The table of an index, a trigger or a policy, or the tables of a grant. */
  #on(at: number, level: Level): number {
    const tokens = this.#tokens
    if (!level.verbs.delete('ATTACHED')) return at + 1
    const first = tokens.skip(tokens.isWord(at + 1, 'TABLE') ? at + 2 : at + 1, BEFORE_TABLE)
    return tokens.isWord(first, ...NOT_TABLES) ? first : this.#tableList(first, level, 'write')
  }

  /** `WITH [RECURSIVE] name [(columns)] AS (query), …`: behind it each name hides the table of that name. */
  #commonTables(at: number, level: Level): number {
    const recursive = this.#tokens.isWord(at + 1, 'RECURSIVE')
    const heads: Array<{ name: string; open: number; close: number }> = []
    let next = at + (recursive ? 2 : 1)
    for (;;) {
      const name = this.#tokens.at(next)
      if (!name || !this.#tokens.isName(next)) break
      let query = next + 1
      if (this.#tokens.isMark(query, '(')) query = (this.#tokens.closing(query) ?? query) + 1
      if (!this.#tokens.isWord(query, 'AS')) break
      query = this.#tokens.skip(query + 1, new Set(['NOT', 'MATERIALIZED']))
      const close = this.#tokens.closing(query)
      if (close === undefined) break
      heads.push({ name: name.text.toLowerCase(), open: query, close })
      next = close + 1
      if (!this.#tokens.isMark(next, ',')) break
      next += 1
    }
    // Another WITH, for example WITH TIME ZONE.
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
    const before = this.#tokens.at(at - 1)
    if (this.#tokens.isWord(at + 1, 'SET')) return at + 1
    if (before && !BEFORE_STATEMENT.has(before.text.toUpperCase())) return at + 1
    level.verbs.add('UPDATE')
    return this.#table(this.#tokens.skip(this.#tokens.skip(at + 1, UPDATE_CONFLICT), BEFORE_TABLE), 'write', level.ctes)
  }

  #afterTable(at: number, level: Level): number {
    const first = this.#tokens.skip(at + 1, BEFORE_TABLE)
    // TABLE t is also a query: behind another one, behind AS, or alone.
    const isQuery =
      this.#tokens.isWord(at - 1, 'AS', 'UNION', 'INTERSECT', 'EXCEPT', 'ALL', 'DISTINCT') ||
      this.#tokens.isMark(at - 1, '(')
    if (isQuery) return this.#table(first, 'read', level.ctes)
    if (hasAny(level.verbs, 'CREATE')) return this.#table(first, this.#createRole(at), level.ctes)
    if (hasAny(level.verbs, 'DROP')) return this.#tableList(first, level, 'drop')
    if (!hasAny(level.verbs, 'ALTER')) return this.#table(first, 'read', level.ctes)
    const end = this.#tokens.skipName(first)
    const isRenamed = this.#tokens.isWord(end, 'RENAME') && this.#tokens.isWord(end + 1, 'TO')
    if (!isRenamed) return this.#table(first, 'write', level.ctes)
    this.#table(first, 'drop', level.ctes)
    return this.#table(end + 2, 'create', level.ctes, { schema: this.#schemaOf(first) })
  }

  #tableList(at: number, level: Level, role: 'read' | 'write' | 'drop'): number {
    let next = this.#table(this.#tokens.skip(at, BEFORE_TABLE), role, level.ctes)
    while (this.#tokens.isMark(next, ','))
      next = this.#table(this.#tokens.skip(next + 1, BEFORE_TABLE), role, level.ctes)
    return next
  }

  /** The schema of the name, which a renamed table keeps. */
  #schemaOf(at: number): string[] {
    return this.#tokens.isMark(at + 1, '.') ? [this.#tokens.at(at)!.text.toLowerCase()] : []
  }

  /** A temporary table belongs to the session alone, so it counts for no domain. */
  #createRole(at: number): 'create' | undefined {
    for (
      let back = at - 1;
      back >= 0 && !this.#tokens.isMark(back, ';') && !this.#tokens.isWord(back, 'CREATE');
      back--
    ) {
      if (this.#tokens.isWord(back, 'TEMP', 'TEMPORARY')) return undefined
    }
    return 'create'
  }

  /** Notes the name at `at`. @returns where to go on */
  #table(
    at: number,
    role: TableMention['role'] | undefined,
    ctes: TableNames,
    { mayBeFunction = false, schema = [] }: { mayBeFunction?: boolean; schema?: readonly string[] } = {},
  ): number {
    if (!this.#tokens.isName(at)) return at
    const parts: string[] = [...schema]
    let next = at
    for (;;) {
      const token = this.#tokens.at(next)!
      parts.push(token.text.includes(HOLE) ? '' : token.text.toLowerCase())
      next += 1
      if (!this.#tokens.isMark(next, '.') || !this.#tokens.isName(next + 1)) break
      next += 1
    }
    const isFunction = mayBeFunction && this.#tokens.isMark(next, '(')
    const isCte = parts.length === 1 && ctes.has(parts[0]!)
    // A temporary table belongs to the session alone.
    const isTemporary = parts.length > 1 && /^(?:temp|pg_temp)$/.test(parts[0]!)
    if (role && !isFunction && !isCte && !isTemporary && !parts.includes('')) {
      const schemas = parts.slice(0, -1).filter((schema) => schema !== 'public' && schema !== 'main')
      this.#found.push({ table: [...schemas, parts.at(-1)!].join('.'), role, offset: this.#tokens.at(at)!.offset })
    }
    return next
  }

  /** `JOIN b USING (id)` within a DELETE: a list of columns follows, not a query. */
  #isJoinColumns(at: number): boolean {
    return this.#tokens.isMark(at + 1, '(') && !this.#tokens.isWord(at + 2, 'SELECT', 'WITH', 'VALUES')
  }
}

/** A list of tables follows. */
function expectTables(level: Level): void {
  level.inFrom = true
  level.expectsTable = true
}

function hasAny(set: ReadonlySet<string>, ...words: string[]): boolean {
  return words.some((word) => set.has(word))
}
