// What the process writes for people: colours, lines of the log, where to look next.
import type { LogLevel } from '../../contracts/logger.ts'
import { copyEnvironment } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import { frameOf, isOfPlugin, shown } from '../../core/errors/places.ts'

const CODES = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2 } as const
export type Colour = keyof typeof CODES

/** Back to the start of the line, and clear it. */
const CLEAR = '\r\x1b[K'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Whether colours are wanted: FORCE_COLOR says so for any output (`0` and `false`: none), NO_COLOR forbids them, and else a terminal
 * gets them that is not `dumb`. See https://no-color.org and https://force-color.org.
 */
export function wantsColours(isTerminal: boolean, { FORCE_COLOR, NO_COLOR, TERM }: Environment): boolean {
  if (FORCE_COLOR) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return !NO_COLOR && isTerminal && TERM !== 'dumb'
}

/** Standard output for people: whole lines and, on a terminal, a last line that can be overwritten. */
export class Terminal {
  readonly hasColours: boolean
  /** True where a line can be overwritten. */
  readonly canReplace: boolean
  readonly #write: (text: string, level: LogLevel) => void
  readonly #columns: () => number
  /** Text of the line that may be overwritten; null when there is none. */
  #open: string | null = null

  /** @param write to standard output */
  constructor(
    write: (text: string, level: LogLevel) => void,
    isTerminal = process.stdout.isTTY === true,
    environment: Environment = copyEnvironment(),
    columns = () => process.stdout.columns || 80,
  ) {
    this.hasColours = wantsColours(isTerminal, environment)
    this.canReplace = isTerminal && environment.TERM !== 'dumb'
    this.#columns = columns
    this.#write = write
  }

  /** A text that leads to an address where it is clicked. It is OSC 8. */
  link(text: string, address: string): string {
    return this.hasColours && this.canReplace ? `\x1b]8;;${address}\x1b\\${text}\x1b]8;;\x1b\\` : text
  }

  /** @param text whole lines, each with its end */
  write(text: string, level: LogLevel = 'INFO'): void {
    this.#write(this.#open === null ? text : `\n${text}`, level)
    this.#open = null
  }

  /** Overwrites the last line that was written so. Does nothing where lines cannot be overwritten. */
  replace(text: string): void {
    // A line that wraps could not be overwritten.
    const line = [...text].slice(0, this.#columns() - 1).join('')
    if (!this.canReplace || line === this.#open) return
    this.#write(this.#open === null ? line : `${CLEAR}${line}`, 'INFO')
    this.#open = line
  }

  /** Removes the line that could still be overwritten. */
  clear(): void {
    if (this.#open !== null) this.#write(CLEAR, 'INFO')
    this.#open = null
  }

  paint(colour: Colour, text: string): string {
    return this.hasColours ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text
  }
}

/** A log record, as it is written. */
export interface LogLine {
  identity: string
  msg: string
  stack?: unknown
  [field: string]: unknown
}

const NOT_SHOWN = new Set(['level', 'time', 'replica', 'identity', 'msg', 'stack', 'fix'])

/**
 * `users.CreateUser  Something happened  user_id=7`, then further lines of the message, how to fix it, and a stack on lines of its own: the frames of the
 * plugin, as far as there are any. Only the first line begins at the margin, and no character is one that a terminal obeys.
 */
export function forPeople(line: LogLine): string {
  const fields = Object.entries(line)
    .filter(([name]) => !NOT_SHOWN.has(name))
    .map(([name, value]) =>
      `  ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`.replaceAll('\n', '\\n'),
    )
  const stack = typeof line.stack === 'string' ? `\n${ownFrames(line.stack, line.line !== undefined)}` : ''
  const fix = typeof line.fix === 'string' ? `\n  Fix: ${line.fix}` : ''
  const [first, ...rest] = line.msg.split('\n')
  const text = [`${line.identity}  ${first}${fields.join('')}`, ...rest].join('\n') + fix + stack
  // A line break in what a client sent must not begin what looks like another record.
  return printable(text).replace(/\n(?! {2})/g, '\n  ')
}

/** A stack without the frames of the runtime, of Node and of packages, unless it has no others and nothing else tells the line. */
function ownFrames(stack: string, hasLine: boolean): string {
  const lines = stack.split('\n')
  const isForeign = (text: string): boolean => /^ {4}at /.test(text) && !isOfPlugin(frameOf(text)?.file)
  const own = lines.filter((text) => !isForeign(text))
  const hasOwnFrame = own.some((text) => /^ {4}at /.test(text))
  return hasOwnFrame || hasLine ? own.join('\n') : stack
}

/**
 * Characters that a terminal obeys instead of showing them, and those that turn the direction of a text or break its line: controls but tab and line
 * feed, and the marks of Unicode.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** A text, or a line of JSON, with `\u001b` for what should not be obeyed: part of it may come from a client. In JSON it is the same value. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

export interface BannerOptions {
  settings: Pick<Settings, 'httpHost' | 'systemHost' | 'lanes' | 'domainsDir'>
  port: number
  /** Null when the pages have no port of their own. */
  systemPort: number | null
  /** Paths that are served. */
  paths: readonly string[]
  isDevelopment: boolean
}

/** Pages of the runtime for people; listed where they are served. */
const PAGES = [
  ['Dashboard', '/system/dashboard'],
  ['API', '/system/docs'],
] as const

/** Lines for a person who has started the process on a terminal: where to look next. */
export function banner({ settings, port, systemPort, paths, isDevelopment }: BannerOptions): string[] {
  const base = pagesAddress(settings, port, systemPort)
  const lines = PAGES.filter(([, path]) => paths.includes(path)).map(([name, path]) => line(name, base + path))
  if (!isDevelopment) return lines
  const folders = settings.domainsDir.map((folder) => shown(folder)).join(', ')
  const lanes = settings.lanes === 1 ? '1 lane' : `${settings.lanes} lanes`
  return [
    ...lines,
    line('Development', `what you change in ${folders} is live at once, in ${lanes}; each request is a line`),
  ]
}

/** Where the pages of the runtime are, without a path. */
export function pagesAddress(
  { httpHost, systemHost }: Pick<Settings, 'httpHost' | 'systemHost'>,
  port: number,
  systemPort: number | null,
): string {
  return `http://${reachable(systemPort === null ? httpHost : systemHost)}:${systemPort ?? port}`
}

function line(name: string, text: string): string {
  return `  ${name.padEnd(12)} ${text}`
}

/** An address that a browser can open. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}
