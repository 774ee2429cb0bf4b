import type { Node, ObjectExpression, TemplateLiteral } from 'oxc-parser'
import type { Frame } from './flow-graph.ts'
import { type Syntax, staticKey, unwrap } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'

/** Stands in a text for what only the running program knows: a character that Unicode gives no meaning. */
export const HOLE = '\u{e000}'

/** What the source says of a value without running it; plain data, so that it can be kept. */
export type Literal =
  | { type: 'string'; line: number; parts: TextPart[] }
  | { type: 'object'; line: number; entries: Array<{ key: string; value: Literal }>; open: boolean }
  /** One of these. */
  | { type: 'choice'; line: number; options: Literal[] }
  | { type: 'number' | 'boolean' | 'null' | 'undefined' | 'array' | 'unknown'; line: number }

/** A stretch of a text that stands in one place of the source. */
export interface TextPart {
  text: string
  line: number
  /** True when line breaks of the text are line breaks of the source. */
  multiline: boolean
}

export class LiteralReader {
  readonly #syntax: Syntax
  readonly #flow: ToolFlow

  constructor(syntax: Syntax, flow: ToolFlow) {
    this.#syntax = syntax
    this.#flow = flow
  }

  read(expression: Node, frame: Frame): Literal {
    return this.#read(expression, frame, 0)
  }

  /** A constant for other files, which nobody is expected to change: a text, or an object with texts in it. */
  readShared(expression: Node, frame: Frame): Literal | undefined {
    const source = this.#flow.resolve({ node: expression, frame })
    const literal = this.#read(source.node, source.frame, 0)
    return isShared(literal) ? literal : undefined
  }

  #read(expression: Node, frame: Frame, depth: number): Literal {
    const node = unwrap(expression)
    const line = this.#syntax.lineOf(expression.start)
    if (depth > 32) return { type: 'unknown', line }
    switch (node.type) {
      case 'Literal':
        if (typeof node.value === 'string') {
          return { type: 'string', line, parts: [{ text: node.value, line, multiline: false }] }
        }
        if (typeof node.value === 'number') return { type: 'number', line }
        if (typeof node.value === 'boolean') return { type: 'boolean', line }
        return { type: node.raw === 'null' ? 'null' : 'unknown', line }
      case 'TemplateLiteral':
        return { type: 'string', line, parts: this.#template(node, frame, depth) }
      case 'BinaryExpression':
        if (node.operator === '+') return this.#sum(node.left, node.right, frame, depth)
        return { type: 'unknown', line }
      case 'UnaryExpression':
        if (node.operator === '-') return { type: 'number', line }
        return { type: node.operator === '!' ? 'boolean' : 'unknown', line }
      case 'ArrayExpression':
        return { type: 'array', line }
      case 'ConditionalExpression':
        return this.#choice([node.consequent, node.alternate], frame, line, depth)
      case 'LogicalExpression':
        return this.#choice([node.left, node.right], frame, line, depth)
      case 'ObjectExpression':
        return this.#object(node, frame, depth)
      case 'Identifier':
        if (node.name === 'undefined') return { type: 'undefined', line }
        return this.#named(node, frame, depth)
      case 'MemberExpression':
        return this.#named(node, frame, depth)
      default:
        return { type: 'unknown', line }
    }
  }

  /** A constant of the same file. Objects and arrays are left out: others may have changed them since. */
  #named(node: Node, frame: Frame, depth: number): Literal {
    const line = this.#syntax.lineOf(node.start)
    const foreign = this.#foreign(node, frame, line)
    if (foreign) return foreign
    const source = this.#flow.resolve({ node, frame })
    const several = this.#flow.alternatives(source)
    if (several) {
      const options = several.map((each) => this.#read(each.node, each.frame, depth + 8))
      return options.some(({ type }) => type === 'string')
        ? { type: 'choice', line, options }
        : { type: 'unknown', line }
    }
    if (source.node === node) return { type: 'unknown', line }
    const value = this.#read(source.node, source.frame, depth + 1)
    if (value.type === 'object' || value.type === 'array') return { type: 'unknown', line }
    return value
  }

  /** A constant of another file of the domain, as if it stood here. */
  #foreign(node: Node, frame: Frame, line: number): Literal | undefined {
    const imported = this.#flow.imported(node, frame)
    let literal = imported?.from.literal
    for (const key of imported?.keys ?? []) {
      literal = literal?.type === 'object' ? literal.entries.find((entry) => entry.key === key)?.value : undefined
    }
    return literal?.type === 'string' ? atLine(literal, line) : undefined
  }

  #choice(nodes: readonly Node[], frame: Frame, line: number, depth: number): Literal {
    return { type: 'choice', line, options: nodes.map((each) => this.#read(each, frame, depth + 8)) }
  }

  #sum(left: Node, right: Node, frame: Frame, depth: number): Literal {
    const line = this.#syntax.lineOf(left.start)
    const [a, b] = [this.#read(left, frame, depth + 1), this.#read(right, frame, depth + 1)]
    if (a.type === 'number' && b.type === 'number') return { type: 'number', line }
    if (a.type !== 'string' && b.type !== 'string') return { type: 'unknown', line }
    return { type: 'string', line, parts: [...partsOf(a), ...partsOf(b)] }
  }

  #template(node: TemplateLiteral, frame: Frame, depth: number): TextPart[] {
    return node.quasis.flatMap((quasi, index) => {
      const { cooked, raw } = quasi.value
      // An escape may be a line break in the text without being one in the source.
      const part = {
        text: cooked ?? raw,
        line: this.#syntax.lineOf(quasi.start),
        multiline: !raw.includes('\\'),
      }
      const expression = node.expressions[index]
      return expression ? [part, ...partsOf(this.#read(expression, frame, depth + 1))] : [part]
    })
  }

  #object(node: ObjectExpression, frame: Frame, depth: number): Literal {
    const literal: Literal = { type: 'object', line: this.#syntax.lineOf(node.start), entries: [], open: false }
    for (const property of node.properties) {
      const key = property.type === 'Property' ? this.#key(property.key, property.computed, frame, depth) : undefined
      if (property.type !== 'Property' || key === undefined) {
        literal.open = true
        // It may replace what stands before it.
        for (const entry of literal.entries) entry.value = { type: 'unknown', line: entry.value.line }
        continue
      }
      const value = this.#read(property.value, frame, depth + 1)
      literal.entries.push({ key, value: { ...value, line: this.#syntax.lineOf(property.start) } })
    }
    return literal
  }

  #key(key: Node, computed: boolean, frame: Frame, depth: number): string | undefined {
    return staticKey(key, computed) ?? (computed ? textOf(this.#read(key, frame, depth + 1)) : undefined)
  }
}

/** What another file says, as if it stood in this line. */
export function atLine(literal: Literal, line: number): Literal {
  if (literal.type !== 'string') return { ...literal, line }
  return { ...literal, line, parts: literal.parts.map(({ text }) => ({ text, line, multiline: false })) }
}

/** The text of a string literal that is known whole. */
export function textOf(literal: Literal | undefined): string | undefined {
  if (literal?.type !== 'string') return undefined
  const text = literal.parts.map((part) => part.text).join('')
  return text.includes(HOLE) ? undefined : text
}

/** All texts that the value may be, as far as they are known whole. */
export function textsOf(literal: Literal | undefined): string[] {
  if (literal?.type === 'choice') return literal.options.flatMap(textsOf)
  const text = textOf(literal)
  return text === undefined ? [] : [text]
}

/** Each string that the value may be. */
export function stringsOf(literal: Literal | undefined): Array<Extract<Literal, { type: 'string' }>> {
  if (literal?.type === 'choice') return literal.options.flatMap(stringsOf)
  return literal?.type === 'string' ? [literal] : []
}

/** The line in the source of an offset in the joined parts. */
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

function partsOf(literal: Literal): TextPart[] {
  return literal.type === 'string' ? literal.parts : [{ text: HOLE, line: literal.line, multiline: false }]
}

function isShared(literal: Literal): boolean {
  if (literal.type === 'string') return true
  return literal.type === 'object' && literal.entries.some(({ value }) => isShared(value))
}
