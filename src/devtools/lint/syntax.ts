import type { Node, Program } from 'oxc-parser'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'

/** A parsed TypeScript or JavaScript file. */
export interface Syntax {
  program: Program
  /** Syntax errors. When there are any, the program holds only what could be parsed, possibly nothing. */
  errors: Array<{ line: number; message: string }>
  lineOf: (offset: number) => number
}

/** Loaded with the first file: an application may not have it. */
let parser: typeof import('oxc-parser') | undefined
let announce: (file: string) => void = () => {}

/** Has `listener` called before a file is parsed: the parser is native code, and can end the process without a word. */
export function onParse(listener: (file: string) => void): void {
  announce = listener
}

/** @param file its extension selects the language; nothing else of it matters @throws PACKAGE_MISSING */
export async function parseSource(file: string, text: string): Promise<Syntax> {
  if (parser === undefined) {
    needPackages('The lint', OPTIONAL_PACKAGES.lint)
    parser = await import('oxc-parser')
  }
  announce(file)
  const result = await parser.parse(file, text, { preserveParens: false })
  const lineOf = lineIndex(text)
  const errors = result.errors
    .filter((error) => error.severity === 'Error')
    .map((error) => ({ line: lineOf(error.labels[0]?.start ?? 0), message: error.message }))
  return { program: result.program, errors, lineOf }
}

/** Calls `visit` with each direct child, in source order. */
export function forEachChild(node: Node, visit: (child: Node) => void): void {
  const record = node as unknown as Record<string, Node | null | Array<Node | null> | undefined>
  for (const key of parser!.visitorKeys[node.type] ?? []) {
    const child = record[key]
    if (Array.isArray(child)) {
      for (const item of child) if (item) visit(item)
    } else if (child) visit(child)
  }
}

/** Calls `visit` with the node and all that it contains, parents first. */
export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  forEachChild(node, (child) => walk(child, visit))
}

/** The expression without the type assertions, optional chaining and `await` around it. */
export function unwrap(node: Node): Node {
  switch (node.type) {
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
    case 'TSInstantiationExpression':
    case 'ParenthesizedExpression':
    case 'ChainExpression':
      return unwrap(node.expression)
    case 'AwaitExpression':
      return unwrap(node.argument)
    default:
      return node
  }
}

/** The name of the member that is accessed or defined; undefined when it is computed, and for what does neither. */
export function keyOf(node: Node): string | undefined {
  if (node.type === 'MemberExpression') return staticKey(node.property, node.computed)
  return 'key' in node && 'computed' in node ? staticKey(node.key, node.computed) : undefined
}

/** The name of a member access or of a property, for example `bus` or `#bus`; undefined when it is computed. */
export function staticKey(key: Node, computed: boolean): string | undefined {
  if (key.type === 'Literal' && typeof key.value === 'string') return key.value
  if (computed) return undefined
  if (key.type === 'Identifier') return key.name
  if (key.type === 'PrivateIdentifier') return `#${key.name}`
  if (key.type === 'Literal' && typeof key.value === 'number') return String(key.value)
  return undefined
}

/** @returns a function from an offset in the text to its line, from 1 */
export function lineIndex(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1
}
