// The tag `sql`.
import type { Condition, Sql, SqlTag, SqlValue } from '../../contracts/db.ts'
import { DbError } from '../errors/catalogue.ts'

/**
 * A statement that begins with this has arrays for rows, in the order of its columns: for query builders, which give several columns one name.
 * On PostgreSQL they hold points in time and NUMERIC as the server writes them, as the libraries expect it of a driver.
 */
export const ROWS_AS_ARRAYS = '/* rows: arrays */ '

/** The same for every copy of this module: a process may have one from source and one that was compiled. JSON has no symbols. */
const BRAND = Symbol.for('heddle.sql')

/** Texts and, between each two of them, a value. */
class Fragment implements Sql {
  readonly [BRAND] = true
  readonly texts: readonly string[]
  readonly values: readonly SqlValue[]
  #text: string | null = null

  constructor(texts: readonly string[], values: readonly SqlValue[]) {
    this.texts = texts
    this.values = values
  }

  get text(): string {
    if (this.#text === null) {
      let text = this.texts[0]!
      for (let n = 1; n < this.texts.length; n++) text += `$${n}${this.texts[n]}`
      this.#text = text
    }
    return this.#text
  }
}

type Part = SqlValue | Sql

export function isSql(value: unknown): value is Sql {
  return typeof value === 'object' && value !== null && BRAND in value
}

function compose(strings: readonly string[], parts: readonly Part[]): Fragment {
  if (parts.length + 1 !== strings.length) {
    throw new DbError('syntax', 'sql is written before a template: sql`SELECT 1`, not sql(…)')
  }
  // Most statements hold values alone.
  if (!parts.some(isSql)) return new Fragment(strings, parts as SqlValue[])
  const texts = [strings[0]!]
  const values: SqlValue[] = []
  for (const [index, part] of parts.entries()) {
    if (isSql(part)) {
      const { texts: inner, values: innerValues } = part as Fragment
      texts[texts.length - 1] += inner[0]!
      texts.push(...inner.slice(1))
      values.push(...innerValues)
      texts[texts.length - 1] += strings[index + 1]!
    } else {
      values.push(part)
      texts.push(strings[index + 1]!)
    }
  }
  return new Fragment(texts, values)
}

function id(...names: string[]): Sql {
  if (names.length === 0 || names.some((name) => typeof name !== 'string' || name === '')) {
    throw new DbError('syntax', 'sql.id takes names, which are texts and not empty')
  }
  return raw(names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.'))
}

function raw(text: string): Sql {
  return new Fragment([text], [])
}

function join(parts: readonly Part[], separator = ', '): Sql {
  if (parts.length === 0) return raw('')
  return compose(['', ...parts.slice(1).map(() => separator), ''], parts)
}

function list(values: readonly Part[]): Sql {
  if (values.length === 0) throw new DbError('other', 'SQL has no empty list: use sql.in(column, values)')
  return compose(['(', ...values.slice(1).map(() => ', '), ')'], values)
}

function chosen(column: string | Sql, operator: 'IN' | 'NOT IN', values: readonly SqlValue[]): Sql {
  if (values.length === 0) return operator === 'IN' ? raw('1 = 0') : raw('1 = 1')
  return compose(['', ` ${operator} `, ''], [typeof column === 'string' ? id(column) : column, list(values)])
}

function combined(conditions: readonly Condition[], word: string, empty: string): Sql {
  const given = conditions.filter(isSql)
  if (given.length === 0) return raw(empty)
  return compose(['(', ...given.slice(1).map(() => `) ${word} (`), ')'], given)
}

function set(values: Readonly<Record<string, Part | undefined>>): Sql {
  const given = Object.entries(values).filter((entry): entry is [string, Part] => entry[1] !== undefined)
  if (given.length === 0) throw new DbError('other', 'sql.set was given no column')
  return join(given.map(([column, value]) => compose(['', ' = ', ''], [id(column), value])))
}

function rows(columns: readonly string[], all: ReadonlyArray<Readonly<Record<string, Part>>>): Sql {
  if (columns.length === 0 || all.length === 0) throw new DbError('other', 'sql.rows was given no column or no row')
  const names = list(columns.map((column) => id(column)))
  const tuples = all.map((row) => list(columns.map((column) => row[column] as Part)))
  return compose(['', ' VALUES ', ''], [names, join(tuples)])
}

/** Composes statements of values and fragments: `` sql`SELECT * FROM items WHERE ${sql.in('id', ids)}` ``. */
export const sql: SqlTag = Object.assign(
  (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>) => compose(strings, parts),
  {
    id,
    list,
    in: (column: string | Sql, values: readonly SqlValue[]) => chosen(column, 'IN', values),
    notIn: (column: string | Sql, values: readonly SqlValue[]) => chosen(column, 'NOT IN', values),
    and: (conditions: readonly Condition[]) => combined(conditions, 'AND', '1 = 1'),
    or: (conditions: readonly Condition[]) => combined(conditions, 'OR', '1 = 0'),
    join,
    set,
    rows,
    raw,
  },
)

/** Values beside a fragment would be values twice. @throws DbError `other` */
export function valuesOf(fragment: Sql, params: readonly unknown[]): readonly SqlValue[] {
  if (!isSql(fragment)) throw new DbError('other', 'A statement is a text, or made by sql`…`')
  if (params.length > 0) throw new DbError('other', 'A statement made by sql`…` has its values in it')
  return fragment.values
}
