import { plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { prose } from './parts.js'

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

  /** The whole schema. */
  render(schema) {
    const fields = this.#fields(schema, 0, [])
    const line = html`<p class="schema-line">${this.#type(schema, [])}${this.#facts(this.resolve(schema))}</p>`
    return html`<div>${fields === nothing ? line : fields}</div>`
  }

  /** The model that a schema is, as a link. */
  linkOf(schema) {
    return modelLink(this.models?.of(this.resolve(schema)))
  }

  /** A line for a parameter: its type and its limits. */
  describe(schema) {
    return html`<span class="schema-line">${this.#type(schema, [])}${this.#facts(this.resolve(schema))}</span>`
  }

  #type(schema, above) {
    return html`<span class="type">${this.#typeParts(schema, above)}</span>`
  }

  /** A type that is a model of its own is a link to it. */
  #typeParts(schema, above) {
    const target = this.resolve(schema)
    const link = schema?.$ref === undefined || above.includes(target) ? nothing : modelLink(this.models?.of(target))
    if (link !== nothing) return link
    const isList = target.type === 'array' && target.items !== undefined
    return isList ? ['array of ', this.#typeParts(target.items, [...above, target])] : this.typeName(schema, above)
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
    const limits = LIMITS.filter(([key]) => target[key] !== undefined)
      // The bounds of all safe integers say nothing.
      .filter(([key]) => Math.abs(target[key]) !== Number.MAX_SAFE_INTEGER)
      .map(([key, text]) => `${text} ${target[key]}`)
    if (target.default !== undefined) limits.push(`default ${JSON.stringify(target.default)}`)
    return [
      target.pattern && !target.format
        ? html`<span class="limit pattern"><code>${target.pattern}</code></span>`
        : nothing,
      limits.map((text) => html`<span class="limit">${text}</span>`),
      target.description ? html`<span class="about">${prose(target.description)}</span>` : nothing,
    ]
  }

  /** The list of an object's fields, also of one in an array or a choice; `nothing` when there are none. */
  #fields(schema, depth, above) {
    const target = this.resolve(schema)
    if (above.includes(target)) return nothing
    const inner = [...above, target]
    if (target.items) return this.#fields(target.items, depth, inner)
    const parts = target.allOf ?? target.anyOf ?? target.oneOf
    if (parts) {
      const lists = parts.map((part) => this.#fields(part, depth, inner)).filter((list) => list !== nothing)
      if (lists.length === 0) return nothing
      if (target.allOf || lists.length === 1) return lists
      return lists.map((list, n) => html`<p class="choice">${n === 0 ? 'either' : 'or'}</p>${list}`)
    }
    const required = new Set(target.required ?? [])
    const properties = Object.entries(target.properties ?? {})
    if (typeof target.additionalProperties === 'object')
      properties.push(['any other name', target.additionalProperties])
    if (properties.length === 0) return nothing
    const rows = properties.map(([name, property]) => this.#field(name, property, required.has(name), depth, inner))
    return html`<ul class="fields">${rows}</ul>`
  }

  #field(name, property, isRequired, depth, above) {
    const line = html`
      <code class="field-name">${name}</code>${this.#type(property, above)}
      ${isRequired ? html`<span class="required">required</span>` : nothing}${this.#facts(this.resolve(property))}`
    const fields = this.#fields(property, depth + 1, above)
    if (fields === nothing) return html`<li><div class="schema-line">${line}</div></li>`
    return html`
      <li><details ?open=${depth + 1 < OPEN_DEPTH}><summary class="schema-line fold-line">${line}</summary>${fields}</details></li>`
  }
}

/** Places that a card names; of the rest it tells how many. */
const USES_SHOWN_MAX = 30

export const modelId = ({ name }) => `model-${name}`

/** The model as a link; `nothing` when a schema is none. */
const modelLink = (model) =>
  model ? html`<a class="model-link" href=${`/system/docs/models#${modelId(model)}`}>${model.name}</a>` : nothing

/** True for a model that the runtime alone uses. */
export function isOfRuntime({ uses }) {
  return uses.every(({ isOwn }) => isOwn)
}

export const modelLine = ({ name, schema, uses }) => html`
  <code class="path">${name}</code><span class="summary-text">${schema.description ?? ''}</span><span class="uses-count">${plural(uses.length, 'use')}</span>`

export function modelBody({ schema, schemas, uses }) {
  const rest = uses.length - USES_SHOWN_MAX
  return html`
    <div class="card-parts">
      <div class="input"><section class="part"><h4>Fields</h4>${schemas.render(schema)}</section></div>
      <div class="trial"><section class="part">
        <h4>Used by</h4>
        <ul class="uses">${uses.slice(0, USES_SHOWN_MAX).map(useLine)}</ul>
        ${rest > 0 ? html`<p class="meta">and ${rest} more</p>` : nothing}
      </section></div>
    </div>`
}

function useLine({ text, place, href, model }) {
  const link = model ? modelLink(model) : html`<a href=${`/system/docs${href}`}><code>${text}</code></a>`
  return html`<li>${link}<span class="about">${place ?? 'a part of it'}</span></li>`
}

/** Names that a schema library gives by itself. */
const NAMELESS = /^__schema/
const DEFINITION = /\/(?:\$defs|definitions)\/([^/]+)$/

/**
 * The schemas of bodies and answers, each once: the same schema at several places is one model, under the name that its definition has.
 * A model has `name`, `schema`, the `schemas` that resolve it, and `uses`: texts with links, and whether they are the runtime's own.
 */
export class Models {
  #byPrint = new Map()
  #byTarget = new WeakMap()

  /** Sorted by name. */
  get list() {
    return [...this.#byPrint.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The model that a schema is, without references; undefined when it is none. */
  of(target) {
    return this.#byTarget.get(target)
  }

  /** Adds a schema with all the definitions in it. @param name for a schema that has none of its own */
  add(schema, schemas, name, use) {
    const target = schemas.resolve(schema)
    if (!hasFields(target)) {
      this.#addParts(target, schemas, use, [])
      return
    }
    const model = this.#model(schema, target, schemas, name)
    model.uses.push(use)
    this.#addParts(target, schemas, { text: model.name, model, isOwn: use.isOwn }, [])
  }

  #model(schema, target, schemas, name) {
    const print = printOf(target, schemas, [])
    const defined = definedName(schema, schemas)
    let model = this.#byPrint.get(print)
    if (model === undefined) {
      model = { name: this.#free(defined ?? name), isDefined: defined !== null, schema: target, schemas, uses: [] }
      this.#byPrint.set(print, model)
    } else if (defined !== null && !model.isDefined) {
      Object.assign(model, { name: this.#free(defined), isDefined: true })
    }
    this.#byTarget.set(target, model)
    return model
  }

  #free(wanted) {
    const taken = new Set([...this.#byPrint.values()].map(({ name }) => name))
    let name = wanted
    for (let n = 2; taken.has(name); n++) name = `${wanted}${n}`
    return name
  }

  /** The definitions that a schema refers to, at any depth. */
  #addParts(target, schemas, use, above) {
    if (above.includes(target)) return
    for (const part of partsOf(target)) {
      const inner = schemas.resolve(part)
      const isModel = definedName(part, schemas) !== null && !above.includes(inner) && inner !== target
      if (!isModel) {
        this.#addParts(inner, schemas, use, [...above, target])
        continue
      }
      const isNew = this.#byTarget.get(inner) === undefined
      const model = this.#model(part, inner, schemas, '')
      if (!model.uses.some(({ text, href }) => text === use.text && href === use.href)) model.uses.push(use)
      if (isNew) this.#addParts(inner, schemas, { text: model.name, model, isOwn: use.isOwn }, [...above, target])
    }
  }
}

/** The name of the definition that a reference points to; null when it points to none. */
function definedName(schema, schemas) {
  let name = null
  for (let found = schema, hops = 0; hops < 16 && typeof found?.$ref === 'string'; hops++) {
    const last = DEFINITION.exec(found.$ref)?.[1]
    if (last !== undefined && !NAMELESS.test(last)) name = decodeURIComponent(last)
    found = schemas.at(found.$ref)
  }
  return name
}

/** What a schema is joined or chosen from. */
export const choicesOf = ({ allOf = [], anyOf = [], oneOf = [] }) => [...allOf, ...anyOf, ...oneOf]

function partsOf(target) {
  const { properties = {}, items, additionalProperties, prefixItems = [] } = target
  const all = [...Object.values(properties), items, additionalProperties, ...choicesOf(target), ...prefixItems]
  return all.filter((part) => typeof part === 'object' && part !== null)
}

function hasFields(target) {
  const isOfFields = ({ properties, $ref }) => properties !== undefined || $ref !== undefined
  return target.properties !== undefined || choicesOf(target).some(isOfFields)
}

/** The same text for the same schema, wherever its definitions stand. */
function printOf(schema, schemas, above) {
  if (typeof schema !== 'object' || schema === null) return JSON.stringify(schema) ?? ''
  if (Array.isArray(schema)) return `[${schema.map((item) => printOf(item, schemas, above)).join()}]`
  const target = typeof schema.$ref === 'string' ? schemas.resolve(schema) : schema
  const index = above.indexOf(target)
  if (index >= 0) return `up ${above.length - index}`
  const inner = [...above, target]
  const keys = Object.keys(target).filter((key) => key !== '$defs' && key !== 'definitions')
  return `{${keys
    .sort()
    .map((key) => `${key}:${printOf(target[key], schemas, inner)}`)
    .join()}}`
}
