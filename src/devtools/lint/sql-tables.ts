import { ANY_DIALECT, type SqlToken, tokenizeSql } from '../../stores/sql/tokens.ts'
import { HOLE } from './texts.ts'

/** A name that stands where a statement names a table. Whether there is such a table, the migrations know. */
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

/**
 * What the next name is: the role of a table; `source`, a table that is read or a function; `alter`, a table that may get another name;
 * `temporary`, a table of the session alone, which counts for no domain.
 */
type Expected = TableMention['role'] | 'source' | 'alter' | 'temporary'

/** Every name where a table stands, without the names that a WITH of its statement makes. */
export function tablesOf(sql: string): TableMention[] {
  const statements: SqlToken[][] = [[]]
  for (const token of tokenizeSql(sql, ANY_DIALECT)) {
    if (token.kind === 'mark' && token.text === ';') statements.push([])
    else if (token.kind !== 'comment') statements.at(-1)!.push(token)
  }
  return statements.flatMap((tokens) => new Statement(sql, tokens).tables()).sort((a, b) => a.offset - b.offset)
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

const CLAUSE_ENDS = words(
  'WHERE GROUP ORDER HAVING LIMIT OFFSET UNION INTERSECT EXCEPT WINDOW SET RETURNING FETCH VALUES WHEN SELECT WITH INSERT DELETE',
)
/** The words before an UPDATE that begins a statement; behind others it is a clause such as ON CONFLICT DO UPDATE or FOR UPDATE. */
const BEFORE_UPDATE = words('( ) BEGIN THEN ELSE EXPLAIN ANALYZE VERBOSE PLAN AS ATOMIC')
/** They may stand before a name that is expected. */
const BEFORE_NAME = words('IF NOT EXISTS ONLY CONCURRENTLY LATERAL TABLE OF OR ROLLBACK ABORT REPLACE FAIL IGNORE')
/** Behind the ON of GRANT they introduce something else than a table. */
const NOT_TABLES = words('SCHEMA DATABASE SEQUENCE FUNCTION ROUTINE LANGUAGE TYPE DOMAIN ALL TABLESPACE')

class Statement {
  readonly #sql: string
  readonly #tokens: readonly SqlToken[]
  readonly #found: TableMention[] = []
  /** The names that its WITH makes, with the tokens between which they hide the tables of those names. */
  readonly #made: readonly { name: string; from: number; to: number }[]
  /** Its words so far. */
  readonly #seen = new Set<string>()
  #expected: Expected | undefined
  /** What a comma introduces, for each open parenthesis. */
  readonly #lists: (Expected | undefined)[] = [undefined]

  constructor(sql: string, tokens: readonly SqlToken[]) {
    this.#sql = sql
    this.#tokens = tokens
    const isRecursive = tokens.some((_, at) => this.#isWord(at, 'RECURSIVE'))
    this.#made = tokens.flatMap(({ text }, at) => {
      const body = this.#bodyOfWith(at)
      if (body === undefined) return []
      const end = this.#endOf(body + 1)
      return [{ name: text.toLowerCase(), from: isRecursive ? at : end, to: this.#endOf(end + 1) }]
    })
  }

  tables(): TableMention[] {
    for (let at = 0; at < this.#tokens.length; ) at = this.#token(at, this.#tokens[at]!)
    return this.#found
  }

  /** @returns where to go on */
  #token(at: number, { kind, text, offset }: SqlToken): number {
    const word = kind === 'word' ? text.toUpperCase() : ''
    if (kind === 'mark' && text === '(') this.#lists.push(this.#expected)
    else if (kind === 'mark' && text === ',') this.#expected = this.#lists.at(-1)
    else if (this.#expected !== undefined && BEFORE_NAME.has(word)) this.#seen.add(word)
    else if (this.#expected !== undefined && this.#isName(at) && !CLAUSE_ENDS.has(word) && !NOT_TABLES.has(word)) {
      const expected = this.#expected
      this.#expected = undefined
      return this.#name(at, expected)
    } else {
      this.#expected = undefined
      if (kind === 'mark' && text === ')' && this.#lists.length > 1) this.#lists.pop()
      if (kind === 'word') this.#word(at, word)
      if (kind === 'string' && this.#isRoutine(at)) this.#addBody(text, offset)
    }
    return at + 1
  }

  #word(at: number, word: string): void {
    if (CLAUSE_ENDS.has(word)) this.#expect(undefined, true)
    switch (word) {
      case 'FROM':
        if (this.#isWord(at - 1, 'DELETE')) this.#expect('write')
        else if (!this.#isWord(at - 1, 'DISTINCT')) this.#expect('source', true)
        break
      case 'JOIN':
        this.#expect('source')
        break
      case 'USING':
        // DELETE … USING a, b and MERGE … USING a; elsewhere it names columns or an index method.
        if (this.#has('DELETE', 'MERGE') && (!this.#isMark(at + 1, '(') || this.#isWord(at + 2, 'SELECT', 'WITH')))
          this.#expect('source', true)
        break
      case 'INTO':
        if (this.#has('INSERT', 'REPLACE', 'MERGE')) this.#expect('write')
        break
      case 'UPDATE':
        if (!this.#isWord(at + 1, 'SET') && (at === 0 || BEFORE_UPDATE.has(this.#tokens[at - 1]!.text.toUpperCase())))
          this.#expect('write')
        break
      case 'COPY':
      case 'LOCK':
        if (at === 0) this.#expect('read', true)
        break
      case 'TRUNCATE':
        this.#expect('write', true)
        break
      case 'VIEW':
        if (this.#has('CREATE', 'ALTER', 'DROP', 'MATERIALIZED')) this.#expectTable(at)
        break
      case 'TABLE':
        this.#expectTable(at)
        break
      case 'REFERENCES':
        this.#expect('reference')
        break
      case 'INHERITS':
        this.#expect('read')
        break
      case 'LIKE':
        // CREATE TABLE t (LIKE u); elsewhere it compares texts.
        if (this.#isMark(at - 1, '(')) this.#expect('read')
        break
      case 'PARTITION':
        if (this.#isWord(at - 1, 'ATTACH', 'DETACH') || this.#isWord(at + 1, 'OF')) this.#expect('read')
        break
      case 'ON':
        // The table of an index, a trigger or a policy, or the tables of a grant.
        if (this.#has('INDEX', 'TRIGGER', 'POLICY', 'GRANT', 'REVOKE') && !this.#has('ON')) this.#expect('write', true)
        break
    }
    this.#seen.add(word)
  }

  /** @param isList of several, with commas */
  #expect(what: Expected | undefined, isList = false): void {
    this.#expected = what
    if (isList) this.#lists[this.#lists.length - 1] = what
  }

  #expectTable(at: number): void {
    // TABLE t is also a query: behind another one, behind AS, or alone.
    const isQuery =
      this.#isWord(at - 1, 'AS', 'UNION', 'INTERSECT', 'EXCEPT', 'ALL', 'DISTINCT') || this.#isMark(at - 1, '(')
    if (isQuery) this.#expect('read')
    else if (this.#has('CREATE')) this.#expect(this.#has('TEMP', 'TEMPORARY') ? 'temporary' : 'create')
    else if (this.#has('DROP')) this.#expect('drop', true)
    else this.#expect(this.#has('ALTER') ? 'alter' : 'read')
  }

  /** Notes the name there. @returns where to go on */
  #name(at: number, expected: Expected, schema: readonly string[] = []): number {
    const parts = [...schema]
    parts.push(this.#tokens[at]!.text.toLowerCase())
    let next = at + 1
    for (; this.#isMark(next, '.') && this.#isName(next + 1); next += 2)
      parts.push(this.#tokens[next + 1]!.text.toLowerCase())
    const isRenamed = expected === 'alter' && this.#isWord(next, 'RENAME') && this.#isWord(next + 1, 'TO')
    const isFunction = expected === 'source' && this.#isMark(next, '(')
    if (expected !== 'temporary' && !isFunction) {
      const role = expected === 'source' ? 'read' : expected !== 'alter' ? expected : isRenamed ? 'drop' : 'write'
      this.#add(parts, role, at)
    }
    // A table keeps its schema with another name.
    return isRenamed && this.#isName(next + 2) ? this.#name(next + 2, 'create', parts.slice(0, -1)) : next
  }

  #add(parts: readonly string[], role: TableMention['role'], at: number): void {
    const isMade = this.#made.some(
      ({ name, from, to }) => parts.length === 1 && name === parts[0] && at > from && at < to,
    )
    const isTemporary = parts.length > 1 && /^(?:temp|pg_temp)$/.test(parts[0]!)
    if (isMade || isTemporary || parts.some((part) => part.includes(HOLE.toLowerCase()))) return
    const schemas = parts.slice(0, -1).filter((schema) => schema !== 'public' && schema !== 'main')
    this.#found.push({ table: [...schemas, parts.at(-1)!].join('.'), role, offset: this.#tokens[at]!.offset })
  }

  /** The body of a function is a string in the statement that creates the function. */
  #addBody(body: string, offset: number): void {
    // It begins somewhere behind its opening quote. Each doubled quote in it moves what follows by one character.
    const start = Math.max(offset, this.#sql.indexOf(body, offset))
    this.#found.push(...tablesOf(body).map((mention) => ({ ...mention, offset: start + mention.offset })))
  }

  #isRoutine(at: number): boolean {
    return this.#isWord(at - 1, 'DO') || (this.#isWord(at - 1, 'AS') && this.#has('FUNCTION', 'PROCEDURE'))
  }

  /** `WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (query), …` @returns where the query begins, for such a name */
  #bodyOfWith(at: number): number | undefined {
    if (!this.#isName(at) || !(this.#isWord(at - 1, 'WITH', 'RECURSIVE') || this.#isMark(at - 1, ','))) return undefined
    let next = this.#isMark(at + 1, '(') ? this.#endOf(at + 2) + 1 : at + 1
    if (!this.#isWord(next, 'AS')) return undefined
    while (this.#isWord(next, 'AS', 'NOT', 'MATERIALIZED')) next++
    return this.#isMark(next, '(') ? next : undefined
  }

  /** Where the parenthesis closes that is open there; the end of the statement where none is. */
  #endOf(at: number): number {
    let depth = 0
    for (let next = at; next < this.#tokens.length; next++) {
      if (this.#isMark(next, '(')) depth++
      if (this.#isMark(next, ')') && depth-- === 0) return next
    }
    return this.#tokens.length
  }

  #has(...any: string[]): boolean {
    return any.some((word) => this.#seen.has(word))
  }

  #isName(at: number): boolean {
    const kind = this.#tokens[at]?.kind
    return kind === 'word' || kind === 'name'
  }

  #isWord(at: number, ...any: string[]): boolean {
    const token = this.#tokens[at]
    return token?.kind === 'word' && any.includes(token.text.toUpperCase())
  }

  #isMark(at: number, text: string): boolean {
    const token = this.#tokens[at]
    return token?.kind === 'mark' && token.text === text
  }
}
