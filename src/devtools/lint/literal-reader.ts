import type { Node, ObjectExpression, TemplateLiteral } from 'oxc-parser'
import type { Evaluator } from './flow/evaluator.ts'
import type { Scope } from './flow/graph.ts'
import { atLine, HOLE, type Literal, type TextPart, textOf } from './literal.ts'
import { isSqlTag, textCall } from './sql-templates.ts'
import { type Syntax, staticKey, unwrap } from './syntax.ts'

/** Expressions within expressions are read that far. A choice counts for several, since each of its options is read. */
const MAX_DEPTH = 32
const CHOICE_DEPTH = 8

/** Reads the expressions of one file as literals. */
export class LiteralReader {
  readonly #syntax: Syntax
  readonly #evaluator: Evaluator

  constructor(syntax: Syntax, evaluator: Evaluator) {
    this.#syntax = syntax
    this.#evaluator = evaluator
  }

  read(expression: Node, scope: Scope): Literal {
    return this.#read(expression, scope, 0)
  }

  /** A constant for other files: a text, or an object that holds texts. No code is expected to change the object. */
  readShared(expression: Node, scope: Scope): Literal | undefined {
    const source = this.#evaluator.resolve({ node: expression, scope })
    const literal = this.#read(source.node, source.scope, 0)
    return isShared(literal) ? literal : undefined
  }

  #read(expression: Node, scope: Scope, depth: number): Literal {
    const node = unwrap(expression)
    const line = this.#syntax.lineOf(expression.start)
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
        if (!isSqlTag(node.tag, scope, this.#evaluator)) return { type: 'unknown', line }
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

  /** A constant of the same file. Objects and arrays are left out: other code may have changed them. */
  #named(node: Node, scope: Scope, depth: number): Literal {
    const line = this.#syntax.lineOf(node.start)
    const imported = this.#imported(node, scope, line)
    if (imported) return imported
    const source = this.#evaluator.resolve({ node, scope })
    const alternatives = this.#evaluator.alternatives(source)
    if (alternatives) {
      const options = alternatives.map((each) => this.#read(each.node, each.scope, depth + CHOICE_DEPTH))
      return options.some(({ type }) => type === 'string')
        ? { type: 'choice', line, options }
        : { type: 'unknown', line }
    }
    if (source.node === node) return { type: 'unknown', line }
    const value = this.#read(source.node, source.scope, depth + 1)
    if (value.type === 'object' || value.type === 'array') return { type: 'unknown', line }
    return value
  }

  /** A constant of another file of the domain, as if it stood here. */
  #imported(node: Node, scope: Scope, line: number): Literal | undefined {
    const imported = this.#evaluator.imported(node, scope)
    let literal = imported?.from.literal
    for (const key of imported?.keys ?? []) {
      literal = literal?.type === 'object' ? literal.entries.find((entry) => entry.key === key)?.value : undefined
    }
    return literal?.type === 'string' ? atLine(literal, line) : undefined
  }

  #choice(nodes: readonly Node[], scope: Scope, line: number, depth: number): Literal {
    return { type: 'choice', line, options: nodes.map((each) => this.#read(each, scope, depth + CHOICE_DEPTH)) }
  }

  #sum(left: Node, right: Node, scope: Scope, depth: number): Literal {
    const line = this.#syntax.lineOf(left.start)
    const [a, b] = [this.#read(left, scope, depth + 1), this.#read(right, scope, depth + 1)]
    if (a.type === 'number' && b.type === 'number') return { type: 'number', line }
    if (a.type !== 'string' && b.type !== 'string') return { type: 'unknown', line }
    return { type: 'string', line, parts: [...partsOf(a), ...partsOf(b)] }
  }

  /** `sql.id(…)` and `sql.raw(…)`. */
  #sqlText(node: Node, scope: Scope, line: number, depth: number): Literal {
    const call = textCall(node, scope, this.#evaluator)
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
        line: this.#syntax.lineOf(quasi.start),
        multiline: !raw.includes('\\'),
      }
      const expression = node.expressions[index]
      if (!expression) return [part]
      if (isSql && !this.#isFragment(expression, scope)) return [part, mark(HOLE, part.line)]
      return [part, ...partsOf(this.#read(expression, scope, depth + 1))]
    })
  }

  #isFragment(expression: Node, scope: Scope): boolean {
    const source = this.#evaluator.resolve({ node: expression, scope })
    if (source.node.type === 'TaggedTemplateExpression') return isSqlTag(source.node.tag, source.scope, this.#evaluator)
    return textCall(source.node, source.scope, this.#evaluator) !== undefined
  }

  #object(node: ObjectExpression, scope: Scope, depth: number): Literal {
    const literal: Literal = { type: 'object', line: this.#syntax.lineOf(node.start), entries: [], open: false }
    for (const property of node.properties) {
      const key = property.type === 'Property' ? this.#key(property.key, property.computed, scope, depth) : undefined
      if (property.type !== 'Property' || key === undefined) {
        literal.open = true
        // It may replace the entries before it.
        for (const entry of literal.entries) entry.value = { type: 'unknown', line: entry.value.line }
        continue
      }
      const value = this.#read(property.value, scope, depth + 1)
      literal.entries.push({ key, value: { ...value, line: this.#syntax.lineOf(property.start) } })
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

function isShared(literal: Literal): boolean {
  if (literal.type === 'string') return true
  return literal.type === 'object' && literal.entries.some(({ value }) => isShared(value))
}
