// The kinds of variables: how each is read, what it wants, and what the page of all variables says of its values.

import { isIP } from 'node:net'
import { delimiter, resolve } from 'node:path'
import { parseBoolean, parseNumber } from './plugin-variables.ts'

/** The settings of the rows above one. */
export type Above = Readonly<Record<string, unknown>>
/** A function is called with whether `npm run dev` runs, too. */
type Default<T> = T | ((above: Above, isDevelopment: boolean) => T)

/** One variable, whose setting is a `T`. */
export interface Row<T> {
  /** The value of a text, or what was expected instead. */
  readonly read: (text: string) => { value: T } | { wanted: string }
  /** Used when the variable is unset or empty. A text is read like a given one. */
  readonly default: Default<T> | string
  /** What the variable changes, in one sentence. */
  readonly effect: string
  /** Its values, as the page of all variables tells them. */
  readonly values: string
  /** Never shown in messages and never handed to plugins. */
  readonly secret?: true
}

interface Range<T> {
  min: number
  max: number
  unit?: string
  default?: Default<T>
}

export function whole<T extends number | undefined = undefined>(of: Range<T>, effect: string): Row<number | T> {
  return ranged(of, effect, 'a whole number', (text) => (/^[+-]?\d+$/.test(text) ? Number(text) : undefined))
}

export function fraction<T extends number | undefined = undefined>(of: Range<T>, effect: string): Row<number | T> {
  const row = ranged(of, effect, 'a number', parseNumber)
  return { ...row, values: `${row.values}, fractions too` }
}

function ranged<T extends number | undefined>(
  { min, max, unit, default: byDefault }: Range<T>,
  effect: string,
  noun: string,
  parse: (text: string) => number | undefined,
): Row<number | T> {
  const wanted = `${noun} from ${min} to ${max}${unit ? ` (${unit})` : ''}`
  const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`
  return {
    read: (text) => {
      const value = parse(text)
      return value !== undefined && value >= min && value <= max ? { value } : { wanted }
    },
    default: byDefault as Default<T>,
    effect,
    values: unit === undefined ? range : `${range} ${unit}`,
  }
}

export function flag(byDefault: Default<boolean>, effect: string): Row<boolean> {
  const read: Row<boolean>['read'] = (text) => {
    const value = parseBoolean(text)
    return value === undefined ? { wanted: 'true or false' } : { value }
  }
  return { read, default: byDefault, effect, values: '`true` or `false`' }
}

/** @param aliases other words for choices */
export function choice<const T extends string>(
  choices: readonly T[],
  byDefault: Default<NoInfer<T>>,
  effect: string,
  aliases: Readonly<Record<string, NoInfer<T>>> = {},
): Row<T> {
  const read: Row<T>['read'] = (text) => {
    const word = text.toLowerCase()
    const value = aliases[word] ?? choices.find((each) => each === word)
    return value === undefined ? { wanted: `one of ${choices.join(', ')}` } : { value }
  }
  return { read, default: byDefault, effect, values: choices.map((each) => `\`${each}\``).join(', ') }
}

interface TextOf<T> {
  pattern?: RegExp
  /** What `pattern` lets through, in words. */
  wanted?: string
  unit?: string
  default?: Default<T>
  secret?: true
}

export function text<T extends string | undefined = undefined>(of: TextOf<T>, effect: string): Row<string | T> {
  const { pattern, wanted, unit, default: byDefault, secret } = of
  const read: Row<string>['read'] = (value) =>
    pattern?.test(value) === false ? { wanted: wanted ?? String(pattern) } : { value }
  return { read, default: byDefault as Default<T>, effect, values: wanted ?? unit ?? 'any string', secret }
}

export function folder(byDefault: string, effect: string): Row<string> {
  return { read: (path) => ({ value: resolve(path) }), default: byDefault, effect, values: 'path of a folder' }
}

export function folders(byDefault: string, effect: string): Row<readonly string[]> {
  const read: Row<readonly string[]>['read'] = (paths) => ({
    value: split(paths, delimiter).map((path) => resolve(path)),
  })
  return { read, default: byDefault, effect, values: "folders separated by the platform's path delimiter" }
}

export function file(byDefault: Default<string>, effect: string): Row<string> {
  // Each thread opens its own connection, so each would have its own database in memory.
  const read: Row<string>['read'] = (path) =>
    path.startsWith(':memory:') ? { wanted: 'the path of a file' } : { value: resolve(path) }
  return { read, default: byDefault, effect, values: 'path of a file' }
}

interface Item {
  /** What is separated by commas. */
  values: string
  wanted: string
  /** The item as it is kept; undefined for what is none. */
  read(item: string): string | undefined
}

/** Items separated by commas; none by default. */
export function list(item: Item, effect: string): Row<readonly string[]> {
  const read: Row<readonly string[]>['read'] = (text) => {
    const items = split(text, ',').map((each) => item.read(each))
    return items.every((each) => each !== undefined)
      ? { value: items }
      : { wanted: `${item.wanted}, separated by commas` }
  }
  return { read, default: '', effect, values: `comma-separated ${item.values}` }
}

export const ORIGIN: Item = {
  values: 'origins',
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
  values: 'host names',
  wanted: 'names like app.example.com, *.example.com or addresses, without ports',
  read: (item) => {
    const lower = item.toLowerCase()
    const host = isIP(lower) === 6 ? `[${lower}]` : lower
    return HOST_PATTERN.test(host) ? host : undefined
  },
}

export const NAME: Item = {
  values: 'names, `AWS_*` for all that begin so',
  wanted: 'names of variables like AWS_REGION or AWS_*',
  read: (item) => (/^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(item) ? item : undefined),
}

export const NETWORK: Item = {
  values: 'addresses or networks',
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
