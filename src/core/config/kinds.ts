// The kinds of variables: how each is read, what it wants, and what the page of all variables says of its values.

import { isIP } from 'node:net'
import { delimiter, resolve } from 'node:path'
import { parseBoolean, parseNumber } from './plugin-variables.ts'

/** The settings of the rows above one. */
export type Above = Readonly<Record<string, unknown>>
/** A function is called with whether `npm run dev` runs, too. */
type Default<T> = T | ((above: Above, isDevelopment: boolean) => T)

/** One variable, whose setting is a `T`. What it changes stands on the page of all variables. */
export interface Row<T> {
  /** The value of a text; undefined for one that is none. */
  readonly read: (text: string) => T | undefined
  /** Its values, as the message of a fault and the page of all variables tell them. */
  readonly wanted: string
  /** Used when the variable is unset or empty. A text is read like a given one. */
  readonly default: Default<T> | string
  /** Never shown in messages and never handed to plugins. */
  readonly secret?: true
}

interface Range<T> {
  min: number
  max: number
  unit?: string
  default?: Default<T>
}

export function whole<T extends number | undefined = undefined>(of: Range<T>): Row<number | T> {
  return ranged(of, 'a whole number', (text) => (/^[+-]?\d+$/.test(text) ? Number(text) : undefined))
}

export function fraction<T extends number | undefined = undefined>(of: Range<T>): Row<number | T> {
  return ranged(of, 'a number', parseNumber)
}

function ranged<T extends number | undefined>(
  { min, max, unit, default: byDefault }: Range<T>,
  noun: string,
  parse: (text: string) => number | undefined,
): Row<number | T> {
  const range = max === Number.MAX_SAFE_INTEGER ? `, ${min} or more` : ` from ${min} to ${max}`
  return {
    read: (text) => {
      const value = parse(text)
      return value !== undefined && value >= min && value <= max ? value : undefined
    },
    wanted: `${noun}${range}${unit ? ` (${unit})` : ''}`,
    default: byDefault as Default<T>,
  }
}

export function flag(byDefault: Default<boolean>): Row<boolean> {
  return { read: parseBoolean, wanted: 'true or false', default: byDefault }
}

/** @param aliases other words for choices */
export function choice<const T extends string>(
  choices: readonly T[],
  byDefault: Default<NoInfer<T>>,
  aliases: Readonly<Record<string, NoInfer<T>>> = {},
): Row<T> {
  const read = (text: string): T | undefined => {
    const word = text.toLowerCase()
    return aliases[word] ?? choices.find((each) => each === word)
  }
  return { read, wanted: `one of ${choices.join(', ')}`, default: byDefault }
}

interface TextOf<T> {
  pattern?: RegExp
  /** What `pattern` lets through, in words. */
  wanted?: string
  default?: Default<T>
  secret?: true
}

export function text<T extends string | undefined = undefined>(of: TextOf<T> = {}): Row<string | T> {
  const { pattern, wanted = 'any text', default: byDefault, secret } = of
  const read = (value: string): string | undefined => (pattern?.test(value) === false ? undefined : value)
  return { read, wanted, default: byDefault as Default<T>, secret }
}

export function folder(byDefault: string): Row<string> {
  return { read: (path) => resolve(path), wanted: 'the path of a folder', default: byDefault }
}

export function folders(byDefault: string): Row<readonly string[]> {
  const read = (paths: string): readonly string[] => split(paths, delimiter).map((path) => resolve(path))
  return { read, wanted: "folders separated by the platform's path delimiter", default: byDefault }
}

export function file(byDefault: Default<string>): Row<string> {
  // Each thread opens its own connection, so each would have its own database in memory.
  const read = (path: string): string | undefined => (path.startsWith(':memory:') ? undefined : resolve(path))
  return { read, wanted: 'the path of a file', default: byDefault }
}

/** Of a list. `read` gives it as it is kept. */
type Item = Pick<Row<string>, 'read' | 'wanted'>

/** Items separated by commas; none by default. */
export function list({ read, wanted }: Item): Row<readonly string[]> {
  const readAll = (text: string): readonly string[] | undefined => {
    const items = split(text, ',').map(read)
    return items.every((each) => each !== undefined) ? items : undefined
  }
  return { read: readAll, wanted: `${wanted}, separated by commas`, default: '' }
}

export const ORIGIN: Item = {
  wanted: 'origins like https://app.example.com',
  read: (item) => {
    const url = URL.canParse(item) ? new URL(item) : undefined
    const isOrigin = url && url.origin !== 'null' && url.href === `${url.origin}/`
    return item === '*' ? item : isOrigin ? url.origin : undefined
  },
}

/** `*`, or a name or an address without a port; `*.` in front of a name stands for every name below it. */
const HOST_PATTERN = /^(?:\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])$/

export const HOST: Item = {
  wanted: 'names like app.example.com, *.example.com or addresses, without ports',
  read: (item) => {
    const lower = item.toLowerCase()
    const host = isIP(lower) === 6 ? `[${lower}]` : lower
    return HOST_PATTERN.test(host) ? host : undefined
  },
}

export const NAME: Item = {
  wanted: 'names of variables like AWS_REGION or AWS_*',
  read: (item) => (/^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(item) ? item : undefined),
}

export const NETWORK: Item = {
  wanted: 'addresses or networks like 10.0.0.0/8 and fd00::/8',
  read: (item) => {
    const [address, prefix, ...more] = item.split('/') as [string, ...string[]]
    const bits = isIP(address) === 6 ? 128 : 32
    const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
    return isIP(address) !== 0 && !address.includes('%') && fits && more.length === 0 ? item : undefined
  },
}

function split(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
