/** Names that a schema library gives by itself. */
const NAMELESS = /^__schema/
const DEFINITION = /\/(?:\$defs|definitions)\/([^/]+)$/

/**
 * The schemas of bodies, answers and events, each once: the same schema at several places is one model, under the name that its definition has.
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

function partsOf({
  properties = {},
  items,
  additionalProperties,
  allOf = [],
  anyOf = [],
  oneOf = [],
  prefixItems = [],
}) {
  const all = [...Object.values(properties), items, additionalProperties, ...allOf, ...anyOf, ...oneOf, ...prefixItems]
  return all.filter((part) => typeof part === 'object' && part !== null)
}

function hasFields(target) {
  const parts = [target.allOf, target.anyOf, target.oneOf].flatMap((list) => list ?? [])
  return (
    target.properties !== undefined || parts.some((part) => part.properties !== undefined || part.$ref !== undefined)
  )
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
