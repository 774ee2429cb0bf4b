import type { JsonSchema } from '../../contracts/route-info.ts'
import { placed, refersToItself } from '../../core/schemas/json-schema.ts'

const SCHEMAS = '#/components/schemas/'

/** The schemas that a document holds by name. A generated client has a type for each of them. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {}

  /** @param name unique; letters, digits, `.`, `_` and `-` */
  schema(name: string, schema: JsonSchema): JsonSchema {
    const isSimple = schema.type !== 'object' && !refersToItself(schema)
    return isSimple ? placed(schema, '') : { $ref: this.#add(name, schema) }
  }

  /** A part of a schema. When the part refers to the whole, the whole becomes a component too. */
  part(name: string, whole: JsonSchema, part: JsonSchema): JsonSchema {
    return refersToItself(part) ? placed(part, this.#add(name, whole)) : placed(part, '')
  }

  #add(name: string, schema: JsonSchema): string {
    const place = SCHEMAS + name
    this.schemas[name] ??= placed(schema, place)
    return place
  }
}
