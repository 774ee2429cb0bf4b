import { el, prose } from '/system/docs/dom.js'
import { modelLink } from './model-view.js'

/** Objects below this depth are folded. */
const OPEN_DEPTH = 2

const LIMITS = [
  ['minimum', '≥'],
  ['exclusiveMinimum', '>'],
  ['maximum', '≤'],
  ['exclusiveMaximum', '<'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'length ≥'],
  ['maxLength', 'length ≤'],
  ['minItems', 'items ≥'],
  ['maxItems', 'items ≤'],
]

/** Renders the schemas of one document for people. */
export class SchemaView {
  /** The models that fields link to; null while there are none. */
  models = null
  #document

  constructor(document) {
    this.#document = document
  }

  /** The schema that a local reference points to; an empty schema when there is none. */
  resolve(schema) {
    let found = schema ?? {}
    for (let hops = 0; hops < 16 && typeof found?.$ref === 'string'; hops++) found = this.at(found.$ref)
    return typeof found === 'object' && found !== null ? found : {}
  }

  /** What a local reference points to, which may be another reference. */
  at(pointer) {
    let found = this.#document
    for (const part of pointer.replace(/^#\/?/, '').split('/').filter(Boolean)) {
      found = found?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')]
    }
    return found
  }

  /** The whole schema as an element. */
  render(schema) {
    const target = this.resolve(schema)
    const fields = this.#fields(schema, 0, [])
    const about = this.#facts(target)
    return el('div.schema', {}, fields === null && el('p.schema-line', {}, this.#type(schema, []), ...about), fields)
  }

  /** The model that a schema is, as a link; null when it is none. */
  linkOf(schema) {
    return modelLink(this.models?.of(this.resolve(schema)))
  }

  /** A line for a parameter: its type and its limits. */
  describe(schema) {
    return el('span.schema-line', {}, this.#type(schema, []), ...this.#facts(this.resolve(schema)))
  }

  #type(schema, above) {
    return el('span.type', {}, ...this.#typeNodes(schema, above))
  }

  /** A type that is a model of its own is a link to it. */
  #typeNodes(schema, above) {
    const target = this.resolve(schema)
    const link = schema?.$ref === undefined || above.includes(target) ? null : modelLink(this.models?.of(target))
    if (link !== null) return [link]
    const isList = target.type === 'array' && target.items !== undefined
    return isList ? ['array of ', ...this.#typeNodes(target.items, [...above, target])] : [this.typeName(schema, above)]
  }

  typeName(schema, above = []) {
    const target = this.resolve(schema)
    if (above.includes(target)) return 'the same'
    const inner = [...above, target]
    const choices = target.anyOf ?? target.oneOf
    if (choices) return [...new Set(choices.map((choice) => this.typeName(choice, inner)))].join(' or ')
    if (target.allOf) return target.allOf.map((part) => this.typeName(part, inner)).join(' and ')
    if (target.const !== undefined) return JSON.stringify(target.const)
    if (target.enum) return target.enum.map((value) => JSON.stringify(value)).join(' | ')
    const types = [target.type ?? []].flat()
    if (types.length === 0) return target.properties ? 'object' : target.not ? 'nothing' : 'anything'
    return types
      .map((type) => {
        if (type === 'array') return `array of ${target.items ? this.typeName(target.items, inner) : 'anything'}`
        return type === 'string' && target.format ? `string (${target.format})` : type
      })
      .join(' or ')
  }

  /** Limits, default and description. */
  #facts(target) {
    const facts = LIMITS.filter(([key]) => target[key] !== undefined)
      // The bounds of all safe integers say nothing.
      .filter(([key]) => Math.abs(target[key]) !== Number.MAX_SAFE_INTEGER)
      .map(([key, text]) => el('span.limit', {}, `${text} ${target[key]}`))
    if (target.pattern && !target.format) facts.push(el('span.limit.pattern', {}, el('code', {}, target.pattern)))
    if (target.default !== undefined) facts.push(el('span.limit', {}, `default ${JSON.stringify(target.default)}`))
    if (target.description) facts.push(el('span.about', {}, ...prose(target.description)))
    return facts
  }

  /** The list of an object's fields, also of one in an array or a choice; null when there are none. */
  #fields(schema, depth, above) {
    const target = this.resolve(schema)
    if (above.includes(target)) return null
    const inner = [...above, target]
    if (target.items) return this.#fields(target.items, depth, inner)
    const parts = target.allOf ?? target.anyOf ?? target.oneOf
    if (parts) {
      const lists = parts.map((part) => this.#fields(part, depth, inner)).filter((list) => list !== null)
      if (lists.length === 0) return null
      if (target.allOf || lists.length === 1) return el('div', {}, ...lists)
      return el('div', {}, ...lists.flatMap((list, n) => [el('p.choice', {}, n === 0 ? 'either' : 'or'), list]))
    }
    const properties = Object.entries(target.properties ?? {})
    const free = typeof target.additionalProperties === 'object' ? target.additionalProperties : null
    if (properties.length === 0 && free === null) return null
    const required = new Set(target.required ?? [])
    const rows = properties.map(([name, property]) => this.#field(name, property, required.has(name), depth, inner))
    if (free !== null) rows.push(this.#field('any other name', free, false, depth, inner))
    return el('ul.fields', {}, ...rows)
  }

  #field(name, property, isRequired, depth, above) {
    const line = [
      el('code.field-name', {}, name),
      this.#type(property, above),
      isRequired && el('span.required', {}, 'required'),
      ...this.#facts(this.resolve(property)),
    ]
    const fields = this.#fields(property, depth + 1, above)
    if (fields === null) return el('li', {}, el('div.schema-line', {}, ...line))
    return el(
      'li',
      {},
      el('details', { open: depth + 1 < OPEN_DEPTH }, el('summary.schema-line.fold-line', {}, ...line), fields),
    )
  }
}
