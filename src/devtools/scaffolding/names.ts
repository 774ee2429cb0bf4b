import { CommandError } from '../../core/config/command-line.ts'

const KEBAB = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/
const SNAKE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/
const MAX_CHARS = 60
/** Folders of the repository, and names that must not be keys of an object. */
const RESERVED = new Set('test support fixtures runtime plugins migrations constructor prototype'.split(' '))
/** Words that SQLite or PostgreSQL accept as a table name only in quotes. */
const SQL_WORDS = new Set(
  (
    'abort action add all alter analyse analyze and any array as asc attach autoincrement begin between both case cast check collate ' +
    'column commit constraint create cross current default deferrable delete desc distinct do drop else end escape except exists ' +
    'explain fetch filter for foreign from full glob grant group having if in index inner insert intersect into is isnull join key ' +
    'leading left like limit match natural no not notnull null of offset on only or order outer over placing pragma primary ' +
    'raise references regexp reindex release replace restrict returning right rollback row rows savepoint select set some symmetric ' +
    'table temp then to trailing transaction trigger union unique update user using vacuum values variadic view virtual when where ' +
    'window with without'
  ).split(' '),
)

/** @throws CommandError with what is wrong with the name */
export function checkKebab(what: string, name: string, example: string): void {
  if (!KEBAB.test(name))
    throw new CommandError(`${what} is named in small letters with hyphens, like ${example}: not "${name}"`)
  if (name.length > MAX_CHARS) throw new CommandError(`${what} has a name of at most ${MAX_CHARS} characters`)
  if (RESERVED.has(name)) throw new CommandError(`${what} cannot be named ${name}: that word is reserved`)
}

/** The domain and the name of `orders/create-order`. @throws CommandError */
export function inDomain(target: string, what: string, form: string): [domain: string, name: string] {
  const [domain = '', name = '', ...more] = target.split('/')
  if (name === '' || more.length > 0) throw new CommandError(`${what} is named ${form}: not "${target}"`)
  checkKebab('A domain', domain, 'orders')
  return [domain, name]
}

/** @throws CommandError with what is wrong with the name */
export function checkSnake(what: string, name: string, example: string): void {
  if (!SNAKE.test(name)) {
    throw new CommandError(
      `${what} is named in small letters with underscores and without a number, like ${example}: not "${name}"`,
    )
  }
  if (name.length > MAX_CHARS) throw new CommandError(`${what} has a name of at most ${MAX_CHARS} characters`)
}

/** `mail-sender` → `mail_sender` */
export function snake(kebab: string): string {
  return kebab.replaceAll('-', '_')
}

/** `order-lines` → `order lines` */
export function words(kebab: string): string {
  return kebab.replaceAll('-', ' ')
}

/** The singular: `orders` → `order`, `inventory` → `inventory`. */
export function singular(kebab: string): string {
  if (/(?:ss|us|is|news|series)$/.test(kebab)) return kebab
  if (/[^aeiou]ies$/.test(kebab)) return `${kebab.slice(0, -3)}y`
  if (/(?:ch|sh|ss|x|z)es$/.test(kebab)) return kebab.slice(0, -2)
  return kebab.length > 2 && kebab.endsWith('s') ? kebab.slice(0, -1) : kebab
}

/** `an order`, `a user` */
export function withArticle(noun: string): string {
  return `${/^(?:[aeio]|un[^i])/.test(noun) ? 'an' : 'a'} ${noun}`
}

/** The name of a domain's table, changed when it is a word of SQL. */
export function tableName(domain: string): string {
  const name = snake(domain)
  return SQL_WORDS.has(name) ? `${name}_entries` : name
}
