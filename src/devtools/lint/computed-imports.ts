import type { Node } from 'oxc-parser'
import { type Frame, lookup } from './flow-graph.ts'
import { HOLE, type LiteralReader, stringsOf } from './literal.ts'
import type { ModuleImport } from './module-imports.ts'
import { type Syntax, staticKey, unwrap } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'

/**
 * Dynamic imports, `require` and what is resolved against `import.meta`, whose specifiers the source computes: each that it may be. Where
 * only the run knows the end of one, the folders that the source shows, with a slash at the end.
 */
export function computedImports(syntax: Syntax, flow: ToolFlow, literals: LiteralReader): ModuleImport[] {
  const found: ModuleImport[] = []
  const add = (source: Node | undefined, frame: Frame) => {
    if (!source) return
    for (const { parts } of stringsOf(literals.read(source, frame))) {
      const text = parts.map((part) => part.text).join('')
      const hole = text.indexOf(HOLE)
      const specifier = hole === -1 ? text : text.slice(0, text.lastIndexOf('/', hole) + 1)
      if (specifier !== '') found.push({ specifier, line: syntax.lineOf(source.start), typeOnly: false })
    }
  }
  for (const { node, frame } of flow.graph.dynamicImports) add(node, frame)
  for (const { node, frame } of flow.graph.calls) {
    const loads =
      node.type === 'CallExpression' ? isLoader(node.callee, frame, flow) : isOwnUrl(node.callee, node.arguments)
    if (loads) add(node.arguments[0], frame)
  }
  return found
}

/** `require`, `require.resolve`, `import.meta.resolve`, and what `createRequire` makes. */
function isLoader(callee: Node, frame: Frame, flow: ToolFlow): boolean {
  const { node, frame: at } = flow.resolve({ node: callee, frame })
  if (node.type === 'Identifier') return node.name === 'require'
  if (node.type === 'CallExpression') {
    const maker = unwrap(node.callee)
    if (maker.type === 'MemberExpression') return staticKey(maker.property, maker.computed) === 'createRequire'
    const imported = maker.type === 'Identifier' ? lookup(at, maker.name)?.imported : undefined
    return imported?.name === 'createRequire' && /^(?:node:)?module$/.test(imported.module)
  }
  if (node.type !== 'MemberExpression' || staticKey(node.property, node.computed) !== 'resolve') return false
  return isImportMeta(node.object) || isLoader(node.object, at, flow)
}

/** `new URL('…', import.meta.url)`. */
function isOwnUrl(callee: Node, args: readonly Node[]): boolean {
  const base = args[1] && unwrap(args[1])
  return (
    callee.type === 'Identifier' &&
    callee.name === 'URL' &&
    base?.type === 'MemberExpression' &&
    isImportMeta(base.object)
  )
}

function isImportMeta(node: Node): boolean {
  const meta = unwrap(node)
  return meta.type === 'MetaProperty' && meta.meta.name === 'import'
}
