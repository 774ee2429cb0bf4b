import { delimiter, resolve } from 'node:path'
import type { VariableRow } from './variables/row.ts'

export type Parsed = { value: unknown } | { wanted: string }

const TRUE = new Set(['true', '1', 'yes', 'on'])
const FALSE = new Set(['false', '0', 'no', 'off'])

/** Parses one variable's text as its row requires, or says what was expected. */
export function parseVariable(row: VariableRow, raw: string): Parsed {
  const text = row.secret ? raw : raw.trim()
  switch (row.type) {
    case 'integer':
      return inRange(row, /^[+-]?\d+$/.test(text) ? Number(text) : undefined, 'a whole number')
    case 'number':
      return inRange(row, parseNumber(text), 'a number')
    case 'boolean': {
      const value = parseBoolean(text)
      return value === undefined ? { wanted: 'true or false' } : { value }
    }
    case 'choice': {
      const value = row.aliases?.[text.toLowerCase()] ?? text.toLowerCase()
      return row.choices.includes(value) ? { value } : { wanted: `one of ${row.choices.join(', ')}` }
    }
    case 'text':
      return row.pattern && !row.pattern.test(text) ? { wanted: row.wanted ?? String(row.pattern) } : { value: text }
    case 'origins':
      return parseOrigins(text)
    case 'hosts':
      return parseHosts(text)
    case 'names':
      return parseNames(text)
    case 'networks':
      return parseNetworks(text)
    case 'folder':
      return { value: resolve(text) }
    case 'folders':
      return { value: split(text, delimiter).map((folder) => resolve(folder)) }
    case 'file':
      // Each thread opens its own connection, so each would have its own database in memory.
      return text.startsWith(':memory:') ? { wanted: 'the path of a file' } : { value: resolve(text) }
  }
}

/** A decimal number; undefined for anything else, hexadecimals and infinities included. */
export function parseNumber(text: string): number | undefined {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/** true, 1, yes and on, or their opposites, in any case; undefined for anything else. */
export function parseBoolean(text: string): boolean | undefined {
  if (TRUE.has(text.toLowerCase())) return true
  return FALSE.has(text.toLowerCase()) ? false : undefined
}

function inRange(row: { min: number; max: number; unit?: string }, value: number | undefined, noun: string): Parsed {
  if (value !== undefined && value >= row.min && value <= row.max) return { value }
  return { wanted: `${noun} from ${row.min} to ${row.max}${row.unit ? ` (${row.unit})` : ''}` }
}

function parseOrigins(text: string): Parsed {
  const origins: string[] = []
  for (const item of split(text, ',')) {
    const url = URL.canParse(item) ? new URL(item) : undefined
    const isOrigin = url && url.origin !== 'null' && url.href === `${url.origin}/`
    if (item !== '*' && !isOrigin) return { wanted: 'origins like https://app.example.com, separated by commas' }
    origins.push(item === '*' ? item : url!.origin)
  }
  return { value: origins }
}

/** `*`, or a name or an address without a port; `*.` in front of a name stands for every name below it. */
const HOST = /^(?:\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])$/

function parseHosts(text: string): Parsed {
  const hosts = split(text, ',').map((item) => {
    const lower = item.toLowerCase()
    return ipVersion(lower) === 6 ? `[${lower}]` : lower
  })
  return hosts.every((host) => HOST.test(host))
    ? { value: hosts }
    : { wanted: 'names like app.example.com, *.example.com or addresses, without ports, separated by commas' }
}

function parseNames(text: string): Parsed {
  const names = split(text, ',')
  return names.every((name) => /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(name))
    ? { value: names }
    : { wanted: 'names of variables like AWS_REGION or AWS_*, separated by commas' }
}

function parseNetworks(text: string): Parsed {
  const networks = split(text, ',')
  const isNetwork = (network: string): boolean => {
    const [address, prefix, ...more] = network.split('/') as [string, ...string[]]
    const bits = ipVersion(address) === 6 ? 128 : 32
    const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
    return ipVersion(address) !== 0 && !address.includes('%') && fits && more.length === 0
  }
  return networks.every(isNetwork)
    ? { value: networks }
    : { wanted: 'addresses or networks like 10.0.0.0/8 and fd00::/8, separated by commas' }
}

/** 0 for what is no address. Node's network is loaded on demand: lanes parse no settings, and need nothing else of it. */
function ipVersion(text: string): number {
  return process.getBuiltinModule('node:net').isIP(text)
}

function split(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
