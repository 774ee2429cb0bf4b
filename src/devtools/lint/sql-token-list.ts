import type { SqlToken } from '../../stores/sql/tokens.ts'

/** The tokens of SQL by position, with the questions that a reader asks about them. Any position may be asked for. */
export class SqlTokenList {
  readonly length: number
  readonly #tokens: readonly SqlToken[]
  /** Position of each opening parenthesis → position of the one that closes it. */
  readonly #closing = new Map<number, number>()

  constructor(tokens: readonly SqlToken[]) {
    this.#tokens = tokens
    this.length = tokens.length
    const open: number[] = []
    tokens.forEach(({ kind, text }, at) => {
      if (kind !== 'mark') return
      if (text === '(') open.push(at)
      const start = text === ')' ? open.pop() : undefined
      if (start !== undefined) this.#closing.set(start, at)
    })
  }

  at(position: number): SqlToken | undefined {
    return this.#tokens[position]
  }

  isName(position: number): boolean {
    const kind = this.#tokens[position]?.kind
    return kind === 'word' || kind === 'name'
  }

  isWord(position: number, ...words: string[]): boolean {
    const token = this.#tokens[position]
    return token?.kind === 'word' && words.includes(token.text.toUpperCase())
  }

  isMark(position: number, text: string): boolean {
    const token = this.#tokens[position]
    return token?.kind === 'mark' && token.text === text
  }

  /** The first position from there on that is none of the words. */
  skip(position: number, words: ReadonlySet<string>): number {
    let next = position
    while (this.#tokens[next]?.kind === 'word' && words.has(this.#tokens[next]!.text.toUpperCase())) next += 1
    return next
  }

  /** The position behind a name of one or more parts, such as `schema.table`. */
  skipName(position: number): number {
    let next = position + 1
    while (this.isMark(next, '.') && this.isName(next + 1)) next += 2
    return next
  }

  /** The parenthesis that closes the one there; undefined when there is none. */
  closing(position: number): number | undefined {
    return this.#closing.get(position)
  }
}
