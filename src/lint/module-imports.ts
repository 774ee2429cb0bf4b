import type { Node } from 'oxc-parser'
import { type Frame, lookup } from './flow-graph.ts'
import { HOLE, type LiteralReader, stringsOf } from './literal.ts'
import { type Syntax, staticKey, unwrap, walk } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'

/** One mention of another module. */
export interface ModuleImport {
  /** Where only the run knows the end of it: the folders that the source shows, with a slash at the end. */
  specifier: string
  line: number
  /** True when nothing of it is left at run time: `import type`, `export type`, `import('…').Name` in a type. */
  typeOnly: boolean
}

/**
 * Static and dynamic imports, re-exports, `require`, imports in types, and what is resolved against `import.meta`, by line.
 * Specifiers of which the source shows not even a folder are left out.
 */
export function moduleImports(syntax: Syntax, flow: ToolFlow, literals: LiteralReader): ModuleImport[] {
  const found: ModuleImport[] = []
  const add = (source: Node, typeOnly: boolean) => {
    if (source.type !== 'Literal' || typeof source.value !== 'string') return
    found.push({ specifier: source.value, line: syntax.lineOf(source.start), typeOnly })
  }
  const addComputed = (source: Node | undefined, frame: Frame) => {
    if (!source) return
    for (const { parts } of stringsOf(literals.read(source, frame))) {
      const [known = '', ...rest] = parts
        .map(({ text }) => text)
        .join('')
        .split(HOLE)
      const specifier = rest.length === 0 ? known : known.slice(0, known.lastIndexOf('/') + 1)
      if (specifier !== '') found.push({ specifier, line: syntax.lineOf(source.start), typeOnly: false })
    }
  }
  walk(syntax.program, (node) => {
    switch (node.type) {
      // `import { type A }` is left as `import {}` at run time, so only the whole declaration counts as a type's.
      case 'ImportDeclaration':
        add(node.source, node.importKind === 'type')
        break
      case 'ExportNamedDeclaration':
        if (node.source) add(node.source, node.exportKind === 'type')
        break
      case 'ExportAllDeclaration':
        add(node.source, node.exportKind === 'type')
        break
      case 'TSImportType':
        add(node.source, true)
        break
      case 'TSImportEqualsDeclaration':
        if (node.moduleReference.type === 'TSExternalModuleReference') {
          add(node.moduleReference.expression, node.importKind === 'type')
        }
    }
  })
  for (const { node, frame } of flow.graph.dynamicImports) addComputed(node, frame)
  for (const { node, frame } of flow.graph.calls) {
    const loads =
      node.type === 'CallExpression' ? isLoader(node.callee, frame, flow) : isOwnUrl(node.callee, node.arguments)
    if (loads) addComputed(node.arguments[0], frame)
  }
  return found.sort((a, b) => a.line - b.line)
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
