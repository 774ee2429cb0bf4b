// Writes types of TypeScript from JSON Schema, and the texts of a source: literals, keys, comments.
import type { JsonSchema } from '../../contracts/registry.ts'
import { resolved } from '../../core/schemas/json-schema.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import { capital } from '../words.ts'

/** From this depth on a value is `unknown`: a schema whose references cannot be named could go on for ever. */
const MAX_DEPTH = 32

/** What a schema refers to: its root, and the name of the type that the root became. */
interface Root {
  schema: JsonSchema
  name: string
}

/** Keywords that say nothing about the type. */
const ANNOTATIONS = new Set(
  '$schema $id $comment title description default examples deprecated readOnly writeOnly'.split(' '),
)

/** True when a schema takes anything. */
export function isOpen(schema: JsonSchema): boolean {
  return Object.keys(schema).every((keyword) => ANNOTATIONS.has(keyword))
}

/** The types of a file, each with a name of its own. The same definition under the same name is written once. */
export class TypeWriter {
  readonly #texts = new Map<string, string>()
  /** By root, then by pointer. */
  readonly #names = new Map<JsonSchema, Map<string, string>>()

  /** Names that something else in the file has. */
  constructor(taken: Iterable<string>) {
    for (const name of taken) this.#texts.set(name, '')
  }

  /** @returns the name of a type that stands in the file: `wanted`, or with a number behind it where that is taken */
  add(wanted: string, schema: JsonSchema): string {
    const name = this.#free(wanted)
    // Now, because the schema may refer to itself.
    this.#texts.set(name, '')
    this.#names.set(schema, new Map([['#', name]]))
    this.#texts.set(name, this.#declaration(name, schema, { schema, name }))
    return name
  }

  /** The type of a part of a schema that was added, or of one that needs no name. */
  inline(schema: JsonSchema, whole: JsonSchema = schema, name = 'Value'): string {
    return this.#type(schema, { schema: whole, name }, 0, '')
  }

  /** All declarations, in the order of their names. */
  declarations(): string[] {
    const written = [...this.#texts].filter(([, text]) => text !== '')
    return written.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  }

  #free(wanted: string): string {
    let name = wanted
    for (let n = 2; this.#texts.has(name); n++) name = `${wanted}${n}`
    return name
  }

  #declaration(name: string, schema: JsonSchema, root: Root): string {
    const found = this.#type(schema, root, 0, '')
    // A type that is itself, or itself or something else, is none.
    const type = !found.includes('{') && found.split(/ [|&] /).includes(name) ? 'unknown' : found
    const comment = commentOf(schema.description, '')
    const isInterface = type.startsWith('{\n') && type.endsWith('\n}') && isOneObject(type)
    return isInterface ? `${comment}export interface ${name} ${type}\n` : `${comment}export type ${name} = ${type}\n`
  }

  #type(given: unknown, root: Root, depth: number, indent: string): string {
    if (given === false) return 'never'
    if (!isPlainObject(given) || depth > MAX_DEPTH) return 'unknown'
    const schema = given as JsonSchema
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, root)
    if ('const' in schema) return literal(schema.const)
    if (Array.isArray(schema.enum)) return union(schema.enum.map(literal))
    const parts: string[] = []
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const choice = schema[keyword]
      if (Array.isArray(choice)) parts.push(union(choice.map((item) => this.#type(item, root, depth + 1, indent))))
    }
    if (Array.isArray(schema.allOf))
      parts.push(...schema.allOf.map((item) => this.#type(item, root, depth + 1, indent)))
    const own = this.#own(schema, root, depth, indent)
    if (own !== 'unknown') parts.push(own)
    return intersection(parts)
  }

  /** By the keyword `type` alone. */
  #own(schema: JsonSchema, root: Root, depth: number, indent: string): string {
    const { type, properties, items, prefixItems } = schema
    const types = Array.isArray(type) ? type : typeof type === 'string' ? [type] : []
    if (types.length === 0) {
      if (isPlainObject(properties)) return this.#object(schema, root, depth, indent)
      return items !== undefined || prefixItems !== undefined ? this.#array(schema, root, depth, indent) : 'unknown'
    }
    return union(
      types.map((each) => {
        if (each === 'object') return this.#object(schema, root, depth, indent)
        if (each === 'array') return this.#array(schema, root, depth, indent)
        return PLAIN[each as string] ?? 'unknown'
      }),
    )
  }

  #array(schema: JsonSchema, root: Root, depth: number, indent: string): string {
    const { items, prefixItems, minItems } = schema
    const rest = items === undefined ? 'unknown' : this.#type(items, root, depth + 1, indent)
    if (!Array.isArray(prefixItems)) return /[ |&]/.test(rest) ? `Array<${rest}>` : `${rest}[]`
    const least = typeof minItems === 'number' ? minItems : prefixItems.length
    const first = prefixItems.map((item, index) => {
      const type = this.#type(item, root, depth + 1, indent)
      return index < least ? type : `(${type})?`
    })
    return items === undefined || items === false
      ? `[${first.join(', ')}]`
      : `[${[...first, `...Array<${rest}>`].join(', ')}]`
  }

  #object(schema: JsonSchema, root: Root, depth: number, indent: string): string {
    const { properties, additionalProperties, patternProperties, propertyNames } = schema
    const inner = `${indent}  `
    const required = new Set(Array.isArray(schema.required) ? schema.required : [])
    const known = isPlainObject(properties) ? Object.entries(properties) : []
    const lines = known.map(([key, property]) => {
      const comment = commentOf(describe(property), inner)
      const type = this.#type(property, root, depth + 1, inner)
      const isOptional = !required.has(key)
      return `${comment}${inner}${keyOf(key)}${isOptional ? '?' : ''}: ${type}${isOptional && type !== 'unknown' ? ' | undefined' : ''}\n`
    })
    const others = [
      ...(additionalProperties === undefined || additionalProperties === false ? [] : [additionalProperties]),
      ...(isPlainObject(patternProperties) ? Object.values(patternProperties) : []),
    ]
    const other = union(others.map((each) => (each === true ? 'unknown' : this.#type(each, root, depth + 1, inner))))
    if (known.length === 0) {
      if (others.length === 0)
        return additionalProperties === false ? 'Record<string, never>' : '{ [key: string]: unknown }'
      const names = isPlainObject(propertyNames) && Array.isArray(propertyNames.enum) ? propertyNames.enum : undefined
      if (names === undefined) return `{ [key: string]: ${other} }`
      const isWhole = names.every((name) => required.has(name))
      return `{ [key in ${union(names.map(literal))}]${isWhole ? '' : '?'}: ${other} }`
    }
    if (others.length === 0) return `{\n${lines.join('')}${indent}}`
    if (other === 'unknown') return `{\n${lines.join('')}${inner}[key: string]: unknown\n${indent}}`
    return `{\n${lines.join('')}${indent}} & { [key: string]: ${other} }`
  }

  /** A definition that is referred to becomes a type of its own. */
  #reference(pointer: string, root: Root): string {
    const names = this.#names.get(root.schema) ?? new Map<string, string>()
    this.#names.set(root.schema, names)
    const known = names.get(pointer)
    if (known !== undefined) return known
    // The root has no type of its own.
    if (pointer === '#') return 'unknown'
    const schema = pointer.startsWith('#') ? resolved(root.schema, { $ref: pointer }) : undefined
    if (schema === undefined) return 'unknown'
    const last = decodeURIComponent(pointer.split('/').at(-1)!)
    const isNamed = /^#\/(?:\$defs|definitions)\/[A-Za-z]\w*$/.test(pointer)
    const wanted = isNamed ? capital(last) : `${root.name}${capital(last.replace(/\W|_/g, ''))}`
    return this.#share(wanted, schema, root, (name) => names.set(pointer, name))
  }

  /** The same definition may stand in the schemas of several routes: it is written once. */
  #share(wanted: string, schema: JsonSchema, root: Root, keep: (name: string) => void): string {
    for (let n = 1; ; n++) {
      const name = n === 1 ? wanted : `${wanted}${n}`
      const written = this.#texts.get(name)
      keep(name)
      if (written === undefined) this.#texts.set(name, '')
      const text = this.#declaration(name, schema, root)
      if (written === undefined) this.#texts.set(name, text)
      if (written === undefined || written === text) return name
    }
  }
}

const PLAIN: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

function literal(value: unknown): string {
  return typeof value === 'string' ? quoted(value) : JSON.stringify(value)
}

function union(types: readonly string[]): string {
  const all = [...new Set(types)]
  if (all.length === 0) return 'never'
  return all.includes('unknown')
    ? 'unknown'
    : all.map((type) => (type.includes(' & ') ? `(${type})` : type)).join(' | ')
}

function intersection(types: readonly string[]): string {
  const all = [...new Set(types)].filter((type) => type !== 'unknown')
  if (all.length === 0) return 'unknown'
  return all.length === 1 ? all[0]! : all.map((type) => (type.includes(' | ') ? `(${type})` : type)).join(' & ')
}

/** True for a text that is one object type, and not the union or intersection of several. */
function isOneObject(type: string): boolean {
  return !/^\} [|&] /m.test(type)
}

/** The description of a property, or what is known of its text. */
function describe(property: unknown): unknown {
  if (!isPlainObject(property)) return undefined
  const { description, format } = property
  return description ?? (typeof format === 'string' ? `Format: ${format}` : undefined)
}

/** A text as a literal of TypeScript, in single quotes. */
export function quoted(text: string): string {
  return `'${JSON.stringify(text)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll("'", "\\'")
    .replace(/[\u2028\u2029]/g, escaped)}'`
}

/** The key of a property. */
export function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)
}

/** A text as a comment of documentation before a line; empty for none. It cannot end the comment. */
export function commentOf(text: unknown, indent: string): string {
  if (typeof text !== 'string' || text.trim() === '') return ''
  const lines = text
    .trim()
    .replaceAll('*/', '*\\/')
    .split(/[\r\n\u2028\u2029]+/)
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16)}`
}
