import type { Node, TSSignature, TSType } from 'oxc-parser'
import { type Frame, lookup } from './flow-graph.ts'
import { staticKey } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'
import type { Shape, Value } from './tool-value.ts'

/** Generic types that leave the members of their first argument as they are. */
const TRANSPARENT_TYPES = new Set(['Pick', 'Omit', 'Readonly', 'Partial', 'Required', 'NonNullable'])
/** A type that holds itself is followed no further. */
const MAX_TYPE_DEPTH = 8

/** Says which tools a type annotation stands for: the types of `#heddle`, whatever they are part of. */
export class ToolTypes {
  readonly #flow: ToolFlow

  constructor(flow: ToolFlow) {
    this.#flow = flow
  }

  read(type: TSType, frame: Frame, depth = 0): Value[] {
    if (depth > MAX_TYPE_DEPTH) return []
    switch (type.type) {
      case 'TSUnionType':
      case 'TSIntersectionType':
        return type.types.flatMap((member) => this.read(member, frame, depth + 1))
      case 'TSIndexedAccessType': {
        const index = type.indexType.type === 'TSLiteralType' ? type.indexType.literal : undefined
        if (index?.type !== 'Literal' || typeof index.value !== 'string') return []
        const key = index.value
        return this.read(type.objectType, frame, depth + 1).flatMap((value) => this.#flow.member(value, key))
      }
      case 'TSTypeLiteral':
        return this.#members(type.members, frame, depth)
      case 'TSParenthesizedType':
        return this.read(type.typeAnnotation, frame, depth + 1)
      case 'TSImportType':
        return type.qualifier?.type === 'Identifier' ? this.#flow.ofModule(type.source.value, type.qualifier.name) : []
      case 'TSTypeReference': {
        const name = type.typeName
        if (name.type === 'Identifier') {
          return this.named(name.name, frame, type.typeArguments?.params[0], depth)
        }
        const space = name.type === 'TSQualifiedName' && name.left.type === 'Identifier' ? name.left.name : undefined
        const imported = space === undefined ? undefined : lookup(frame, space)?.imported
        return imported?.name === '*' && name.type === 'TSQualifiedName'
          ? this.#flow.ofModule(imported.module, name.right.name)
          : []
      }
      default:
        return []
    }
  }

  named(name: string, frame: Frame, argument?: TSType, depth = 0): Value[] {
    if (depth > MAX_TYPE_DEPTH) return []
    if (TRANSPARENT_TYPES.has(name) && argument) return this.read(argument, frame, depth + 1)
    const imported = lookup(frame, name)?.imported
    if (imported) return this.#flow.ofModule(imported.module, imported.name)
    const declared = this.#flow.graph.types.get(name)
    if (!declared) return this.#flow.instancesOf(lookup(frame, name))
    if (declared.type === 'TSTypeAliasDeclaration') return this.read(declared.typeAnnotation, frame, depth + 1)
    const parents = declared.extends.flatMap(({ expression, typeArguments }) =>
      expression.type === 'Identifier' ? this.named(expression.name, frame, typeArguments?.params[0], depth + 1) : [],
    )
    return [...parents, ...this.#members(declared.body.body, frame, depth)]
  }

  #members(signatures: readonly TSSignature[], frame: Frame, depth: number): Value[] {
    const members: Record<string, Shape[]> = {}
    for (const signature of signatures) {
      if (signature.type !== 'TSPropertySignature' || !signature.typeAnnotation) continue
      const key = staticKey(signature.key as Node, signature.computed)
      if (key === undefined) continue
      const values = this.read(signature.typeAnnotation.typeAnnotation, frame, depth + 1)
      const shapes = this.#flow.toShapes(values)
      if (shapes.length > 0) members[key] = shapes
    }
    return Object.keys(members).length > 0 ? [this.#flow.fromShape({ members })] : []
  }
}
