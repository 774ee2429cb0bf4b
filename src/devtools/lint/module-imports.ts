import type { Node } from 'oxc-parser'
import { type Syntax, unwrap, walk } from './syntax.ts'

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
        if (node.source) add(node.source, node.exportKind === 'type')
        break
      case 'ExportAllDeclaration':
        add(node.source, node.exportKind === 'type')
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
