// The names of a document: schemas, operations, paths, security schemes.

import type { IdentityScheme } from '../../contracts/http.ts'
import type { JsonSchema, RouteInfo } from '../../contracts/registry.ts'
import { placed, refersToItself } from '../../core/schemas/json-schema.ts'
import { capital, UniqueNames } from '../words.ts'

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

/** Routes in the order of a document: by path, then by method. */
export function inOrder(routes: readonly RouteInfo[]): RouteInfo[] {
  const key = ({ path, method }: RouteInfo) => `${path} ${method}`
  return routes.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** Makes unique operation ids: `GET /users/:id` is `getUsersById`. They depend on method and path alone, so that links stay valid. */
export class OperationIds {
  readonly #names = new UniqueNames()

  of({ method, path }: Pick<RouteInfo, 'method' | 'path'>): string {
    const words = path.split('/').filter(Boolean).flatMap(wordsOf)
    return this.#names.of(method.toLowerCase() + (words.length > 0 ? words.map(capital).join('') : 'Root'))
  }
}

/** Words of ASCII letters and digits, which both operation ids and component names allow. Other characters become their code points. */
function wordsOf(segment: string): string[] {
  if (segment === '*') return ['rest']
  const words = segment
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .map((word) => word.replace(/[^A-Za-z0-9]/gu, (char) => `u${char.codePointAt(0)!.toString(16)}`))
  return segment.startsWith(':') ? ['by', ...words] : words
}

/** A parameter of a path. */
export interface PathParameter {
  /** Its name in documents. */
  name: string
  /** Its key in the handler's `data` and in the route's schema; `*` for the rest of the path. */
  key: string
}

/** A route's path as OpenAPI writes it: `/users/{id}`. */
export interface PathName {
  text: string
  parameters: PathParameter[]
}

/**
 * The paths of a document. Two routes that differ in parameter names alone are one path in a document,
 * so both take the parameter names of the first.
 */
export class PathNames {
  readonly #byShape = new Map<string, PathName>()

  of(path: string): PathName {
    const shape = path.replace(/:[^/]+/g, ':')
    const own = pathName(path)
    const first = this.#byShape.get(shape) ?? own
    this.#byShape.set(shape, first)
    const parameters = own.parameters.map(({ key }, index) => ({ key, name: first.parameters[index]!.name }))
    return { text: first.text, parameters }
  }
}

export function pathName(path: string): PathName {
  const segments = path.split('/')
  const rest = segments.includes(':rest') ? 'rest_of_path' : 'rest'
  const parameters: PathParameter[] = []
  const text = segments.map((segment) => {
    if (segment !== '*' && !segment.startsWith(':')) return segment.replaceAll('{', '%7B').replaceAll('}', '%7D')
    const key = segment === '*' ? '*' : segment.slice(1)
    const name = segment === '*' ? rest : key
    parameters.push({ name, key })
    return `{${name}}`
  })
  return { text: text.join('/'), parameters }
}

/** Source: OpenAPI specification 3.1.0, security scheme object. */
export type SecurityScheme = Readonly<Record<string, unknown>>

const BEARER: SecurityScheme = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'Sent as `Authorization: Bearer <token>`.',
}
const COOKIE: SecurityScheme = { type: 'apiKey', in: 'cookie', name: '__Host-session' }

/** How the clients of a document say who they are. */
export class SecuritySchemes {
  /** By name. */
  readonly all: Record<string, SecurityScheme> = { bearer: BEARER }

  /** What a route asks for: any one of these; an empty one where it serves strangers, too. None: nothing. */
  of({ has_auth, security }: RouteInfo): Record<string, string[]>[] {
    if (has_auth) return [{ bearer: [] }]
    if (security === null) return []
    const ways = security.schemes.map((scheme) => ({ [this.#nameOf(scheme)]: [] }))
    return security.is_required ? ways : [{}, ...ways]
  }

  #nameOf(scheme: IdentityScheme): string {
    const isNamed = typeof scheme === 'string'
    const described = isNamed ? (scheme === 'bearer' ? BEARER : COOKIE) : scheme
    const wanted = isNamed ? scheme : String(scheme.name ?? scheme.scheme ?? scheme.type)
    const name = wanted.replace(/[^\w.-]/g, '_')
    for (let n = 1; ; n++) {
      const free = n === 1 ? name : `${name}_${n}`
      this.all[free] ??= described
      if (JSON.stringify(this.all[free]) === JSON.stringify(described)) return free
    }
  }
}
