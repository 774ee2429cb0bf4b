import type { CallExpression, Node, ObjectExpression } from 'oxc-parser'
import type { Evaluator } from './flow/evaluator.ts'
import { lookup, type Scope } from './flow/graph.ts'
import type { PayloadSchema } from './payload-schema.ts'
import { staticKey, unwrap } from './syntax.ts'

type SchemaType = PayloadSchema['type']

const TYPE_OF_FACTORY: Readonly<Record<string, SchemaType>> = {
  ...typed(
    'string',
    'string enum templateLiteral email uuid uuidv4 uuidv6 uuidv7 guid url httpUrl emoji nanoid cuid cuid2',
  ),
  ...typed('string', 'ulid xid ksuid ipv4 ipv6 mac cidrv4 cidrv6 base64 base64url hex jwt e164 hostname lowercase'),
  ...typed('number', 'number int int32 uint32 float32 float64'),
  ...typed('boolean', 'boolean'),
  ...typed('null', 'null'),
  ...typed('array', 'array tuple'),
  ...typed('object', 'record'),
}
/** Factories whose values no literal shows, and which do not take `undefined`. */
const REQUIRED_FACTORIES = new Set(['date', 'bigint', 'discriminatedUnion', 'nativeEnum'])
/** Methods after which the schema takes another type, or one that cannot be told. */
const RETYPING_METHODS = new Set(['or', 'and', 'pipe', 'overwrite', 'keyof', 'unwrap', 'shape'])
const UNKNOWN: PayloadSchema = { type: 'unknown', optional: true, nullable: true }

/** Reads the zod schemas of one file. */
export class SchemaReader {
  readonly #evaluator: Evaluator
  /** Calls that are being read. A schema that holds itself takes anything at that place. */
  readonly #inProgress = new Set<Node>()

  constructor(evaluator: Evaluator) {
    this.#evaluator = evaluator
  }

  read(expression: Node, scope: Scope): PayloadSchema {
    const imported = this.#evaluator.imported(expression, scope)
    if (imported) return imported.keys.length === 0 ? (imported.from.schema ?? UNKNOWN) : UNKNOWN
    const source = this.#evaluator.resolve({ node: expression, scope })
    if (source.node !== expression && source.node.type === 'Identifier') return this.read(source.node, source.scope)
    if (source.node.type !== 'CallExpression' || this.#inProgress.has(source.node)) return UNKNOWN
    this.#inProgress.add(source.node)
    const schema = this.#call(source.node, source.scope)
    this.#inProgress.delete(source.node)
    return schema
  }

  #call(call: CallExpression, scope: Scope): PayloadSchema {
    const factory = this.#factoryPath(call.callee, scope)
    if (factory) return this.#fromFactory(factory, call, scope)
    const callee = unwrap(call.callee)
    if (callee.type !== 'MemberExpression') return UNKNOWN
    const method = staticKey(callee.property, callee.computed)
    if (!method) return UNKNOWN
    return this.#afterMethod(this.read(callee.object, scope), method, call, scope)
  }

  /** `['iso', 'date']` of `z.iso.date`, whatever zod was imported as; undefined for anything else. */
  #factoryPath(callee: Node, scope: Scope): string[] | undefined {
    const node = unwrap(callee)
    if (node.type === 'MemberExpression') {
      const key = staticKey(node.property, node.computed)
      const path = this.#factoryPath(node.object, scope)
      return key && path ? [...path, key] : undefined
    }
    const imported = node.type === 'Identifier' ? lookup(scope, node.name)?.imported : undefined
    if (!imported || !/^zod(\/|$)/.test(imported.module)) return undefined
    return imported.name === '*' || imported.name === 'z' || imported.name === 'default' ? [] : [imported.name]
  }

  #fromFactory(path: readonly string[], call: CallExpression, scope: Scope): PayloadSchema {
    const [name, ...more] = path
    const argument = call.arguments[0]
    const inner = () => (argument ? this.read(argument, scope) : UNKNOWN)
    if (name === 'iso' && more.length === 1) return required('string')
    if (name === undefined || more.length > 0) return UNKNOWN
    if (name === 'object' || name === 'strictObject' || name === 'looseObject') {
      return this.#object(argument, scope, name === 'looseObject')
    }
    if (name === 'optional') return { ...inner(), optional: true }
    if (name === 'nullable') return { ...inner(), nullable: true }
    if (name === 'nullish') return { ...inner(), optional: true, nullable: true }
    if (name === 'literal') return argument?.type === 'Literal' ? required(typeOfConstant(argument.value)) : UNKNOWN
    if (REQUIRED_FACTORIES.has(name)) return { ...UNKNOWN, optional: false }
    const type = TYPE_OF_FACTORY[name]
    return type ? required(type) : UNKNOWN
  }

  #afterMethod(base: PayloadSchema, method: string, call: CallExpression, scope: Scope): PayloadSchema {
    if (['optional', 'default', 'prefault', 'catch'].includes(method)) return { ...base, optional: true }
    if (method === 'nullable') return { ...base, nullable: true }
    if (method === 'nullish') return { ...base, optional: true, nullable: true }
    if (method === 'nonoptional') return { ...base, optional: false }
    if (method === 'array') return required('array')
    if (RETYPING_METHODS.has(method)) return UNKNOWN
    if (base.type !== 'object') return base
    switch (method) {
      case 'passthrough':
      case 'loose':
      case 'catchall':
        return { ...base, loose: true }
      case 'partial':
        if (call.arguments.length > 0) return { ...base, fields: undefined }
        return {
          ...base,
          fields: base.fields?.map(({ key, schema }) => ({ key, schema: { ...schema, optional: true } })),
        }
      case 'extend':
      case 'safeExtend': {
        const added = this.#object(call.arguments[0], scope, false).fields
        if (!base.fields || !added) return { ...base, fields: undefined }
        const replaced = new Set(added.map(({ key }) => key))
        return { ...base, fields: [...base.fields.filter(({ key }) => !replaced.has(key)), ...added] }
      }
      case 'pick':
      case 'omit':
      case 'merge':
      case 'required':
        return { ...base, fields: undefined }
      default:
        return base
    }
  }

  #object(argument: Node | undefined, scope: Scope, loose: boolean): PayloadSchema {
    const source = argument && this.#evaluator.resolve({ node: argument, scope })
    if (source?.node.type !== 'ObjectExpression') return required('object')
    const fields = this.#fields(source.node, source.scope)
    return fields ? { ...required('object'), fields, loose } : required('object')
  }

  #fields(node: ObjectExpression, scope: Scope): PayloadSchema['fields'] {
    const fields: NonNullable<PayloadSchema['fields']> = []
    for (const property of node.properties) {
      const key = property.type === 'Property' ? staticKey(property.key, property.computed) : undefined
      if (property.type !== 'Property' || key === undefined) return undefined
      fields.push({ key, schema: this.read(property.value, scope) })
    }
    return fields
  }
}

function required(type: SchemaType): PayloadSchema {
  return type === 'unknown' ? UNKNOWN : { type, optional: false, nullable: type === 'null' }
}

function typeOfConstant(value: unknown): SchemaType {
  if (value === null) return 'null'
  const type = typeof value
  return type === 'string' || type === 'number' || type === 'boolean' ? type : 'unknown'
}

function typed(type: SchemaType, names: string): Record<string, SchemaType> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]))
}
