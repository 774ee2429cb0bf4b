// Texts and payloads as far as the source shows them without being run: constants, sums, templates, choices, and what sql`…` composes.
import type { Node, ObjectExpression, TemplateLiteral } from 'oxc-parser'
import { type Expression, importOf, type Scope } from './scopes.ts'
import { keyOf, staticKey, unwrap } from './syntax.ts'
import { isHeddle, type Values } from './values.ts'

/** Stands in a text for a part that only the running program knows. Unicode gives this character no meaning. */
export const HOLE = '\u{e000}'

/** A value as far as the source shows it without being run. */
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

export function joined(parts: readonly TextPart[]): string {
  return parts.map(({ text }) => text).join('')
}

/** The text of a string that is known as a whole. */
export function textOf(literal: Literal | undefined): string | undefined {
  return literal?.type === 'string' ? textsOf(literal)[0] : undefined
}

/** Every text that the value may be and that is known as a whole. */
export function textsOf(literal: Literal | undefined): string[] {
  const texts = stringsOf(literal).map(({ parts }) => joined(parts))
  return texts.filter((text) => !text.includes(HOLE))
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

/** Expressions within expressions are read that far. A choice counts for several, since each of its options is read. */
const MAX_DEPTH = 32
const CHOICE_DEPTH = 8

/** Reads the expressions of one domain as literals. */
export class Texts {
  readonly #values: Values

  constructor(values: Values) {
    this.#values = values
  }

  read({ node, scope }: Expression): Literal {
    return this.#read(node, scope, 0)
  }

  #read(expression: Node, scope: Scope, depth: number): Literal {
    const node = unwrap(expression)
    const line = lineOf(scope, expression.start)
    if (depth > MAX_DEPTH) return { type: 'unknown', line }
    switch (node.type) {
      case 'Literal':
        if (typeof node.value === 'string') {
          return { type: 'string', line, parts: [{ text: node.value, line, multiline: false }] }
        }
        if (typeof node.value === 'number') return { type: 'number', line }
        if (typeof node.value === 'boolean') return { type: 'boolean', line }
        return { type: node.raw === 'null' ? 'null' : 'unknown', line }
      case 'TemplateLiteral':
        return { type: 'string', line, parts: this.#template(node, scope, depth) }
      case 'TaggedTemplateExpression': {
        if (!this.isSqlTag(node.tag, scope)) return { type: 'unknown', line }
        return { type: 'string', line, parts: this.#template(node.quasi, scope, depth, true) }
      }
      case 'CallExpression':
        return this.#sqlText(node, scope, line, depth)
      case 'BinaryExpression':
        if (node.operator === '+') return this.#sum(node.left, node.right, scope, depth)
        return { type: 'unknown', line }
      case 'UnaryExpression':
        if (node.operator === '-') return { type: 'number', line }
        return { type: node.operator === '!' ? 'boolean' : 'unknown', line }
      case 'ArrayExpression':
        return { type: 'array', line }
      case 'ConditionalExpression':
        return this.#choice([node.consequent, node.alternate], scope, line, depth)
      case 'LogicalExpression':
        return this.#choice([node.left, node.right], scope, line, depth)
      case 'ObjectExpression':
        return this.#object(node, scope, depth)
      case 'Identifier':
        if (node.name === 'undefined') return { type: 'undefined', line }
        return this.#named(node, scope, depth)
      case 'MemberExpression':
        return this.#named(node, scope, depth)
      default:
        return { type: 'unknown', line }
    }
  }

  /** A constant, as if it stood here. Objects and arrays are left out: other code may have changed them. */
  #named(node: Node, scope: Scope, depth: number): Literal {
    const line = lineOf(scope, node.start)
    const source = this.#values.resolve({ node, scope })
    const alternatives = this.#values.alternatives(source)
    if (alternatives) {
      const options = alternatives.map((each) => this.#read(each.node, each.scope, depth + CHOICE_DEPTH))
      return options.some(({ type }) => type === 'string')
        ? { type: 'choice', line, options: options.map((each) => seenFrom(scope, source.scope, each, line)) }
        : { type: 'unknown', line }
    }
    if (source.node === node) return { type: 'unknown', line }
    const value = this.#read(source.node, source.scope, depth + 1)
    if (value.type === 'object' || value.type === 'array') return { type: 'unknown', line }
    return seenFrom(scope, source.scope, value, line)
  }

  #choice(nodes: readonly Node[], scope: Scope, line: number, depth: number): Literal {
    return { type: 'choice', line, options: nodes.map((each) => this.#read(each, scope, depth + CHOICE_DEPTH)) }
  }

  #sum(left: Node, right: Node, scope: Scope, depth: number): Literal {
    const line = lineOf(scope, left.start)
    const [a, b] = [this.#read(left, scope, depth + 1), this.#read(right, scope, depth + 1)]
    if (a.type === 'number' && b.type === 'number') return { type: 'number', line }
    if (a.type !== 'string' && b.type !== 'string') return { type: 'unknown', line }
    return { type: 'string', line, parts: [...partsOf(a), ...partsOf(b)] }
  }

  /** `sql.id(…)` and `sql.raw(…)`. */
  #sqlText(node: Node, scope: Scope, line: number, depth: number): Literal {
    const call = this.#textCall(node, scope)
    if (call === undefined) return { type: 'unknown', line }
    const texts = call.args.map((arg) => partsOf(this.#read(arg, scope, depth + 1)))
    if (call.method === 'raw') return { type: 'string', line, parts: texts.flat() }
    const parts = texts.flatMap((name, index) => [mark(index === 0 ? '"' : '."', line), ...name, mark('"', line)])
    return { type: 'string', line, parts }
  }

  /** @param isSql what is put in is a value, which is no part of the text, unless it is a fragment */
  #template(node: TemplateLiteral, scope: Scope, depth: number, isSql = false): TextPart[] {
    return node.quasis.flatMap((quasi, index) => {
      const { cooked, raw } = quasi.value
      // An escape may be a line break in the text without being one in the source.
      const part = {
        text: cooked ?? raw,
        line: lineOf(scope, quasi.start),
        multiline: !raw.includes('\\'),
      }
      const expression = node.expressions[index]
      if (!expression) return [part]
      if (isSql && !this.#isFragment(expression, scope)) return [part, mark(HOLE, part.line)]
      return [part, ...partsOf(this.#read(expression, scope, depth + 1))]
    })
  }

  #isFragment(expression: Node, scope: Scope): boolean {
    const source = this.#values.resolve({ node: expression, scope })
    if (source.node.type === 'TaggedTemplateExpression') return this.isSqlTag(source.node.tag, source.scope)
    return this.#textCall(source.node, source.scope) !== undefined
  }

  /** `` db.sql`…` ``, or `` sql`…` `` of `#heddle`. */
  isSqlTag(tag: Node, scope: Scope): boolean {
    const node = unwrap(tag)
    const imported = node.type === 'Identifier' ? importOf(scope, node.name) : undefined
    if (imported && isHeddle(imported.module)) return imported.name === 'sql'
    return this.#values.evaluate(node, scope).some((value) => {
      return value.kind === 'method' && value.method === 'sql' && (value.tool === 'db' || value.tool === 'queryable')
    })
  }

  /** The arguments of `sql.id(…)` and `sql.raw(…)`, which stand in the text. */
  #textCall(node: Node, scope: Scope): { method: 'id' | 'raw'; args: readonly Node[] } | undefined {
    const callee = node.type === 'CallExpression' ? unwrap(node.callee) : undefined
    if (node.type !== 'CallExpression' || callee?.type !== 'MemberExpression') return undefined
    const method = keyOf(callee)
    if (method !== 'id' && method !== 'raw') return undefined
    return this.isSqlTag(callee.object, scope) ? { method, args: node.arguments } : undefined
  }

  #object(node: ObjectExpression, scope: Scope, depth: number): Literal {
    const literal: Literal = { type: 'object', line: lineOf(scope, node.start), entries: [], open: false }
    for (const property of node.properties) {
      const key = property.type === 'Property' ? this.#key(property.key, property.computed, scope, depth) : undefined
      if (property.type !== 'Property' || key === undefined) {
        literal.open = true
        // It may replace the entries before it.
        for (const entry of literal.entries) entry.value = { type: 'unknown', line: entry.value.line }
        continue
      }
      const value = this.#read(property.value, scope, depth + 1)
      literal.entries.push({ key, value: { ...value, line: lineOf(scope, property.start) } })
    }
    return literal
  }

  #key(key: Node, computed: boolean, scope: Scope, depth: number): string | undefined {
    return staticKey(key, computed) ?? (computed ? textOf(this.#read(key, scope, depth + 1)) : undefined)
  }
}

function partsOf(literal: Literal): TextPart[] {
  return literal.type === 'string' ? literal.parts : [{ text: HOLE, line: literal.line, multiline: false }]
}

const mark = (text: string, line: number): TextPart => ({ text, line, multiline: false })

const lineOf = ({ source }: Scope, offset: number): number => source.syntax.lineOf(offset)

/** A literal of another file, as if it stood in this line. */
export function seenFrom(here: Scope, there: Scope, literal: Literal, line: number): Literal {
  if (here.source === there.source) return literal
  if (literal.type !== 'string') return { ...literal, line }
  return { ...literal, line, parts: literal.parts.map(({ text }) => ({ text, line, multiline: false })) }
}
