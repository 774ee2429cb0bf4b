/** Stands in a text for a part that only the running program knows. Unicode gives this character no meaning. */
export const HOLE = '\u{e000}'

/** A value as far as the source shows it without being run. Plain data, so that it can be kept. */
export type Literal =
  | { type: 'string'; line: number; parts: TextPart[] }
  | { type: 'object'; line: number; entries: Array<{ key: string; value: Literal }>; open: boolean }
  /** One of several. */
  | { type: 'choice'; line: number; options: Literal[] }
  | { type: 'number' | 'boolean' | 'null' | 'undefined' | 'array' | 'unknown'; line: number }

/** A part of a text that stands in one place of the source. */
export interface TextPart {
  text: string
  line: number
  /** True when line breaks of the text are line breaks of the source. */
  multiline: boolean
}

/** A literal of another file, as if it stood in this line. */
export function atLine(literal: Literal, line: number): Literal {
  if (literal.type !== 'string') return { ...literal, line }
  return { ...literal, line, parts: literal.parts.map(({ text }) => ({ text, line, multiline: false })) }
}

/** The text of a string that is known as a whole. */
export function textOf(literal: Literal | undefined): string | undefined {
  if (literal?.type !== 'string') return undefined
  const text = literal.parts.map((part) => part.text).join('')
  return text.includes(HOLE) ? undefined : text
}

/** Every text that the value may be and that is known as a whole. */
export function textsOf(literal: Literal | undefined): string[] {
  if (literal?.type === 'choice') return literal.options.flatMap(textsOf)
  const text = textOf(literal)
  return text === undefined ? [] : [text]
}

/** Every string that the value may be. */
export function stringsOf(literal: Literal | undefined): Array<Extract<Literal, { type: 'string' }>> {
  if (literal?.type === 'choice') return literal.options.flatMap(stringsOf)
  return literal?.type === 'string' ? [literal] : []
}

/** The source line of an offset in the joined parts. */
export function lineInParts(parts: readonly TextPart[], offset: number): number {
  let start = 0
  for (const part of parts) {
    const end = start + part.text.length
    if (offset < end) {
      if (!part.multiline) return part.line
      return part.line + part.text.slice(0, offset - start).split('\n').length - 1
    }
    start = end
  }
  return parts.at(-1)?.line ?? 1
}
