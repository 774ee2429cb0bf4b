import type { Node } from 'oxc-parser'
import type { Evaluator } from './flow/evaluator.ts'
import { lookup, type Scope } from './flow/graph.ts'
import type { ToolFlow } from './flow/tool-flow.ts'
import { HOLE, stringsOf } from './literal.ts'
import type { LiteralReader } from './literal-reader.ts'
import type { ModuleImport } from './module-imports.ts'
import { type Syntax, staticKey, unwrap } from './syntax.ts'

/**
 * Dynamic imports, `require` and specifiers resolved against `import.meta`: one entry for each specifier that the source may compute.
 * When the end of a specifier is only known at run time, the entry is the folder that the source shows, with a slash at the end.
 */
export function computedImports(syntax: Syntax, flow: ToolFlow, literals: LiteralReader): ModuleImport[] {
  const found: ModuleImport[] = []
  const add = (source: Node | undefined, scope: Scope) => {
    if (!source) return
    for (const { parts } of stringsOf(literals.read(source, scope))) {
      const text = parts.map((part) => part.text).join('')
      const hole = text.indexOf(HOLE)
      const specifier = hole === -1 ? text : text.slice(0, text.lastIndexOf('/', hole) + 1)
      if (specifier !== '') found.push({ specifier, line: syntax.lineOf(source.start), typeOnly: false, late: true })
    }
  }
  for (const { node, scope } of flow.graph.dynamicImports) add(node, scope)
  for (const { node, scope } of flow.graph.calls) {
    const loads =
      node.type === 'CallExpression'
        ? isLoader(node.callee, scope, flow.evaluator)
        : isOwnUrl(node.callee, node.arguments)
    if (loads) add(node.arguments[0], scope)
  }
  return found
}

/** `require`, `require.resolve`, `import.meta.resolve`, and the result of `createRequire`. */
function isLoader(callee: Node, scope: Scope, evaluator: Evaluator): boolean {
  const { node, scope: at } = evaluator.resolve({ node: callee, scope })
  if (node.type === 'Identifier') return node.name === 'require'
  if (node.type === 'CallExpression') {
    const maker = unwrap(node.callee)
    if (maker.type === 'MemberExpression') return staticKey(maker.property, maker.computed) === 'createRequire'
    const imported = maker.type === 'Identifier' ? lookup(at, maker.name)?.imported : undefined
    return imported?.name === 'createRequire' && /^(?:node:)?module$/.test(imported.module)
  }
  if (node.type !== 'MemberExpression' || staticKey(node.property, node.computed) !== 'resolve') return false
  return isImportMeta(node.object) || isLoader(node.object, at, evaluator)
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
