import type { LogLevel } from '../../contracts/logger.ts'
import { copyEnvironment } from '../../core/config/load.ts'

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
