import type { JsonSchema } from '../../contracts/route-info.ts'
import { placed, refersToItself } from '../../core/schemas/json-schema.ts'

const SCHEMAS = '#/components/schemas/'

/** The schemas of a document that have a place of their own: clients that are generated get a type of that name. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {}

  /** @param name unique; letters, digits, `.`, `_` and `-` */
  schema(name: string, schema: JsonSchema): JsonSchema {
    const isSimple = schema.type !== 'object' && !refersToItself(schema)
    return isSimple ? placed(schema, '') : { $ref: this.#add(name, schema) }
  }

  /** A part of a schema; the whole gets a place when the part refers to something in it. */
  part(name: string, whole: JsonSchema, part: JsonSchema): JsonSchema {
    return refersToItself(part) ? placed(part, this.#add(name, whole)) : placed(part, '')
  }

  #add(name: string, schema: JsonSchema): string {
    const place = SCHEMAS + name
    this.schemas[name] ??= placed(schema, place)
    return place
  }
}
