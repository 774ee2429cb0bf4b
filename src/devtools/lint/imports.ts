// The modules that a file imports, in whatever form, with specifiers that the source computes.
import type { Node } from 'oxc-parser'
import { type Expression, importOf, type Source } from './scopes.ts'
import { keyOf, type Syntax, unwrap, walk } from './syntax.ts'
import { HOLE, joined, stringsOf, type Texts } from './texts.ts'
import type { Values } from './values.ts'

/** One import of another module, in whatever form. */
export interface ModuleImport {
  specifier: string
  line: number
  /** True when the import does not exist at run time: `import type`, `export type`, `import('…').Name` in a type. */
  typeOnly: boolean
  /** True when the module is loaded later than this file, or only when some code of it runs. */
  late: boolean
}

/** Static and dynamic imports, re-exports, `require` and imports in types, in source order. Computed specifiers are left out. */
export function moduleImports(syntax: Syntax): ModuleImport[] {
  const found: ModuleImport[] = []
  const add = (source: Node, typeOnly: boolean, late = false) => {
    const specifier = literalText(source)
    if (specifier !== undefined) found.push({ specifier, line: syntax.lineOf(source.start), typeOnly, late })
  }
  walk(syntax.program, (node) => {
    switch (node.type) {
      // `import { type A }` remains as `import {}` at run time, so only `import type` counts as types alone.
      case 'ImportDeclaration':
        add(node.source, node.importKind === 'type')
        break
      case 'ExportNamedDeclaration':
      case 'ExportAllDeclaration':
        if (node.source) add(node.source, node.exportKind === 'type')
        break
      case 'ImportExpression':
        add(node.source, false, true)
        break
      case 'TSImportType':
        add(node.source, true)
        break
      case 'TSImportEqualsDeclaration':
        if (node.moduleReference.type === 'TSExternalModuleReference') {
          add(node.moduleReference.expression, node.importKind === 'type')
        }
        break
      case 'CallExpression':
        if (isRequire(node.callee) && node.arguments[0]) add(node.arguments[0], false, true)
    }
  })
  return found
}

/** `require(…)` or `require.resolve(…)`. */
function isRequire(callee: Node): boolean {
  const node = unwrap(callee)
  if (node.type === 'MemberExpression') return isRequire(node.object)
  return node.type === 'Identifier' && node.name === 'require'
}

function literalText(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type !== 'TemplateLiteral' || node.expressions.length > 0) return undefined
  return node.quasis[0]?.value.cooked ?? undefined
}

/**
 * All imports of the file; one that `moduleImports` sees, too, may be there twice. When the end of a specifier is only known at run time, it is
 * the folder that the source shows, with a slash at the end.
 */
export function allImports(source: Source, values: Values, texts: Texts): ModuleImport[] {
  const found = moduleImports(source.syntax)
  const loaders = source.calls.filter(({ node, scope }) =>
    node.type === 'CallExpression'
      ? isLoader({ node: node.callee, scope }, values)
      : isOwnUrl(node.callee, node.arguments),
  )
  const arguments_ = loaders.flatMap(({ node, scope }) =>
    node.arguments[0] ? [{ node: node.arguments[0], scope }] : [],
  )
  for (const each of [...source.dynamicImports, ...arguments_]) {
    for (const { parts } of stringsOf(texts.read(each))) {
      const text = joined(parts)
      const hole = text.indexOf(HOLE)
      const specifier = hole === -1 ? text : text.slice(0, text.lastIndexOf('/', hole) + 1)
      const line = source.syntax.lineOf(each.node.start)
      if (specifier !== '') found.push({ specifier, line, typeOnly: false, late: true })
    }
  }
  return found
}

/** `require`, `require.resolve`, `import.meta.resolve`, and the result of `createRequire`. */
function isLoader(callee: Expression, values: Values): boolean {
  const { node, scope } = values.resolve(callee)
  if (node.type === 'Identifier') return node.name === 'require'
  if (node.type === 'CallExpression') {
    const maker = unwrap(node.callee)
    if (maker.type === 'MemberExpression') return keyOf(maker) === 'createRequire'
    const imported = maker.type === 'Identifier' ? importOf(scope, maker.name) : undefined
    return imported?.name === 'createRequire' && /^(?:node:)?module$/.test(imported.module)
  }
  if (node.type !== 'MemberExpression' || keyOf(node) !== 'resolve') return false
  return isImportMeta(node.object) || isLoader({ node: node.object, scope }, values)
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
