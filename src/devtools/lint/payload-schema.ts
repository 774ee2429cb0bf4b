import type { CallExpression, Node, ObjectExpression } from 'oxc-parser'
import type { Frame } from './flow-graph.ts'
import { lookup } from './flow-graph.ts'
import type { Literal } from './literal.ts'
import { staticKey, unwrap } from './syntax.ts'
import type { ToolFlow } from './tool-flow.ts'

/** What the source of a zod schema says about the values that it takes. Plain data. */
export interface PayloadSchema {
  type: 'string' | 'number' | 'boolean' | 'null' | 'array' | 'object' | 'unknown'
  optional: boolean
  nullable: boolean
  /** Of an object whose fields are known. */
  fields?: Array<{ key: string; schema: PayloadSchema }>
  /** True when keys beside `fields` are meant to be let through. */
  loose?: boolean
}

type SchemaType = PayloadSchema['type']

const TYPE_OF_FACTORY: Readonly<Record<string, SchemaType>> = {
  ...of(
    'string',
    'string enum templateLiteral email uuid uuidv4 uuidv6 uuidv7 guid url httpUrl emoji nanoid cuid cuid2',
  ),
  ...of('string', 'ulid xid ksuid ipv4 ipv6 mac cidrv4 cidrv6 base64 base64url hex jwt e164 hostname lowercase'),
  ...of('number', 'number int int32 uint32 float32 float64'),
  ...of('boolean', 'boolean'),
  ...of('null', 'null'),
  ...of('array', 'array tuple'),
  ...of('object', 'record'),
}
/** Factories whose values have no type that a literal shows, but which take no `undefined`. */
const REQUIRED_FACTORIES = new Set(['date', 'bigint', 'discriminatedUnion', 'nativeEnum'])
/** Methods after which the type that goes in is another or cannot be told. */
const RETYPING_METHODS = new Set(['or', 'and', 'pipe', 'overwrite', 'keyof', 'unwrap', 'shape'])
const UNKNOWN: PayloadSchema = { type: 'unknown', optional: true, nullable: true }

/** Reads schema expressions of one file. */
export class SchemaReader {
  readonly #flow: ToolFlow
  /** Calls being read: a schema that holds itself takes anything at that place. */
  readonly #open = new Set<Node>()

  constructor(flow: ToolFlow) {
    this.#flow = flow
  }

  read(expression: Node, frame: Frame): PayloadSchema {
    const imported = this.#flow.imported(expression, frame)
    if (imported) return imported.keys.length === 0 ? (imported.from.schema ?? UNKNOWN) : UNKNOWN
    const source = this.#flow.resolve({ node: expression, frame })
    if (source.node !== expression && source.node.type === 'Identifier') return this.read(source.node, source.frame)
    if (source.node.type !== 'CallExpression' || this.#open.has(source.node)) return UNKNOWN
    this.#open.add(source.node)
    const schema = this.#call(source.node, source.frame)
    this.#open.delete(source.node)
    return schema
  }

  #call(call: CallExpression, frame: Frame): PayloadSchema {
    const factory = this.#factoryPath(call.callee, frame)
    if (factory) return this.#fromFactory(factory, call, frame)
    const callee = unwrap(call.callee)
    if (callee.type !== 'MemberExpression') return UNKNOWN
    const method = staticKey(callee.property, callee.computed)
    if (!method) return UNKNOWN
    return this.#afterMethod(this.read(callee.object, frame), method, call, frame)
  }

  /** `['iso', 'date']` of `z.iso.date`, whatever zod was imported as; undefined for anything else. */
  #factoryPath(callee: Node, frame: Frame): string[] | undefined {
    const node = unwrap(callee)
    if (node.type === 'MemberExpression') {
      const key = staticKey(node.property, node.computed)
      const path = this.#factoryPath(node.object, frame)
      return key && path ? [...path, key] : undefined
    }
    const imported = node.type === 'Identifier' ? lookup(frame, node.name)?.imported : undefined
    if (!imported || !/^zod(\/|$)/.test(imported.module)) return undefined
    return imported.name === '*' || imported.name === 'z' || imported.name === 'default' ? [] : [imported.name]
  }

  #fromFactory(path: readonly string[], call: CallExpression, frame: Frame): PayloadSchema {
    const [name, ...more] = path
    const argument = call.arguments[0]
    const inner = () => (argument ? this.read(argument, frame) : UNKNOWN)
    if (name === 'iso' && more.length === 1) return required('string')
    if (name === undefined || more.length > 0) return UNKNOWN
    if (name === 'object' || name === 'strictObject' || name === 'looseObject') {
      return this.#object(argument, frame, name === 'looseObject')
    }
    if (name === 'optional') return { ...inner(), optional: true }
    if (name === 'nullable') return { ...inner(), nullable: true }
    if (name === 'nullish') return { ...inner(), optional: true, nullable: true }
    if (name === 'literal') return argument?.type === 'Literal' ? required(typeOfConstant(argument.value)) : UNKNOWN
    if (REQUIRED_FACTORIES.has(name)) return { ...UNKNOWN, optional: false }
    const type = TYPE_OF_FACTORY[name]
    return type ? required(type) : UNKNOWN
  }

  #afterMethod(base: PayloadSchema, method: string, call: CallExpression, frame: Frame): PayloadSchema {
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
        const added = this.#object(call.arguments[0], frame, false).fields
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

  #object(argument: Node | undefined, frame: Frame, loose: boolean): PayloadSchema {
    const source = argument && this.#flow.resolve({ node: argument, frame })
    if (source?.node.type !== 'ObjectExpression') return required('object')
    const fields = this.#fields(source.node, source.frame)
    return fields ? { ...required('object'), fields, loose } : required('object')
  }

  #fields(node: ObjectExpression, frame: Frame): PayloadSchema['fields'] {
    const fields: NonNullable<PayloadSchema['fields']> = []
    for (const property of node.properties) {
      const key = property.type === 'Property' ? staticKey(property.key, property.computed) : undefined
      if (property.type !== 'Property' || key === undefined) return undefined
      fields.push({ key, schema: this.read(property.value, frame) })
    }
    return fields
  }
}

/** Where a payload literal does not fit; `path` is the place within it. */
export interface Misfit {
  line: number
  message: string
}

/** Keys and primitive types only; whatever the source does not say for certain fits. */
export function misfits(payload: Literal, schema: PayloadSchema, path = ''): Misfit[] {
  if (payload.type === 'choice') return payload.options.flatMap((option) => misfits(option, schema, path))
  if (payload.type === 'unknown' || schema.type === 'unknown') return []
  const place = path === '' ? 'the payload' : `'${path}'`
  if (payload.type === 'undefined') {
    return schema.optional ? [] : [{ line: payload.line, message: `lacks the required key ${place}` }]
  }
  if (payload.type === 'null' && schema.nullable) return []
  if (payload.type !== schema.type) {
    return [{ line: payload.line, message: `has ${article(payload.type)} for ${place}, not ${article(schema.type)}` }]
  }
  if (payload.type !== 'object' || !schema.fields) return []
  const found: Misfit[] = []
  const given = new Map(payload.entries.map(({ key, value }) => [key, value]))
  for (const { key, schema: field } of schema.fields) {
    const value = given.get(key)
    const inner = path === '' ? key : `${path}.${key}`
    if (value) found.push(...misfits(value, field, inner))
    else if (!field.optional && !payload.open) {
      found.push({ line: payload.line, message: `lacks the required key '${inner}'` })
    }
  }
  if (schema.loose) return found
  const known = new Set(schema.fields.map(({ key }) => key))
  for (const [key, value] of given) {
    if (known.has(key)) continue
    found.push({ line: value.line, message: `has the unknown key '${path === '' ? key : `${path}.${key}`}'` })
  }
  return found
}

function required(type: SchemaType): PayloadSchema {
  return type === 'unknown' ? UNKNOWN : { type, optional: false, nullable: type === 'null' }
}

function typeOfConstant(value: unknown): SchemaType {
  if (value === null) return 'null'
  const type = typeof value
  return type === 'string' || type === 'number' || type === 'boolean' ? type : 'unknown'
}

function article(type: string): string {
  if (type === 'null') return 'null'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

function of(type: SchemaType, names: string): Record<string, SchemaType> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]))
}
