import { delimiter, resolve } from 'node:path'
import type { VariableRow } from './schema.ts'

export type Parsed = { value: unknown } | { wanted: string }

const TRUE = new Set(['true', '1', 'yes', 'on'])
const FALSE = new Set(['false', '0', 'no', 'off'])

/** Reads one variable's text as its row wants it, or says what was wanted. */
export function parseVariable(row: VariableRow, raw: string): Parsed {
  const text = row.secret ? raw : raw.trim()
  switch (row.type) {
    case 'integer':
      return inRange(row, /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN, 'a whole number')
    case 'number':
      return inRange(row, /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN, 'a number')
    case 'boolean':
      if (TRUE.has(text.toLowerCase())) return { value: true }
      return FALSE.has(text.toLowerCase()) ? { value: false } : { wanted: 'true or false' }
    case 'choice':
      return row.choices.includes(text.toLowerCase())
        ? { value: text.toLowerCase() }
        : { wanted: `one of ${row.choices.join(', ')}` }
    case 'text':
      return row.pattern && !row.pattern.test(text) ? { wanted: row.wanted ?? String(row.pattern) } : { value: text }
    case 'origins':
      return parseOrigins(text)
    case 'folder':
      return { value: resolve(text) }
    case 'folders':
      return { value: split(text, delimiter).map((folder) => resolve(folder)) }
    case 'file':
      // Each thread opens its own connection, so a database in memory would be another one in every thread.
      return text.startsWith(':memory:') ? { wanted: 'the path of a file' } : { value: resolve(text) }
  }
}

function inRange(row: { min: number; max: number; unit?: string }, value: number, noun: string): Parsed {
  if (value >= row.min && value <= row.max) return { value }
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

function split(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
