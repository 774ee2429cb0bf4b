import type { JsonSchema, RouteInfo, ThrownInfo } from '../../contracts/route-info.ts'
import { OperationIds, typeName } from '../apidocs/operation-ids.ts'
import { propertiesOf } from '../apidocs/parameters.ts'
import { isForm, needsBody, WITH_BODY } from '../apidocs/request-body.ts'
import { keyOf, quoted } from './source-text.ts'
import { isOpen, type TypeWriter } from './type-writer.ts'

/** One function of the client. */
export interface Operation {
  id: string
  route: RouteInfo
  /** Type of the first argument. */
  input: string
  /** Nothing has to be given. */
  isInputOptional: boolean
  answer: string
  failure: string
}

/** One for each route, in the order of paths, and named as in the OpenAPI document. */
export function operationsOf(routes: readonly RouteInfo[], types: TypeWriter): Operation[] {
  const ids = new OperationIds()
  const sorted = routes.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  return sorted.map((route) => {
    const id = ids.of(route)
    const name = typeName(id)
    const parts = [...paramsOf(route, name, types), ...queryOf(route, name, types), ...bodyOf(route, name, types)]
    return {
      id,
      route,
      input: parts.length === 0 ? 'Record<string, never>' : `{ ${parts.join('; ')} }`,
      isInputOptional: parts.every((part) => /^\w+\?/.test(part)),
      answer: route.schemas.response === undefined ? 'unknown' : typeOf(`${name}Answer`, route.schemas.response, types),
      failure: failureOf(route, name, types),
    }
  })
}

const orderOf = ({ path, method }: RouteInfo) => `${path} ${method}`

/** A type with a name, unless the schema says nothing. */
function typeOf(name: string, schema: JsonSchema, types: TypeWriter): string {
  return isOpen(schema) ? 'unknown' : types.add(name, schema)
}

function paramsOf({ path, schemas }: RouteInfo, name: string, types: TypeWriter): string[] {
  const keys = path
    .split('/')
    .flatMap((segment) => (segment === '*' ? ['*'] : segment.startsWith(':') ? [segment.slice(1)] : []))
  if (keys.length === 0) return []
  const known = schemas.params === undefined ? undefined : propertiesOf(schemas.params)
  const each = keys.map((key) => {
    const schema = known?.get(key)?.schema
    const type = schema === undefined ? 'unknown' : types.inline(schema, schemas.params, `${name}Params`)
    return `${keyOf(key)}: ${type === 'unknown' ? 'string | number' : type}`
  })
  return [`params: { ${each.join('; ')} }`]
}

function queryOf({ schemas }: RouteInfo, name: string, types: TypeWriter): string[] {
  const { query } = schemas
  const type = query === undefined ? 'unknown' : typeOf(`${name}Query`, query, types)
  // A route with schemas, but none of its query, reads none.
  if (query === undefined && (schemas.body ?? schemas.params) !== undefined) return []
  if (query === undefined || type === 'unknown') return ['query?: Query']
  const isRequired = [...(propertiesOf(query)?.values() ?? [])].some((property) => property.isRequired)
  return [isRequired ? `query: ${type}` : `query?: ${type}`]
}

function bodyOf(
  { method, schemas, has_raw_body, streamed_body, is_stream, is_socket }: RouteInfo,
  name: string,
  types: TypeWriter,
): string[] {
  if (is_stream || is_socket) return []
  const type = 'contentType?: string'
  if (streamed_body === 'multipart') return ['body?: Record<string, unknown> | FormData', 'files?: FormFiles']
  if (streamed_body === 'stream' || (has_raw_body && WITH_BODY.has(method))) return ['body?: RawBody', type]
  const { body } = schemas
  if (body === undefined) return WITH_BODY.has(method) ? ['body?: unknown', 'files?: FormFiles', type] : []
  const fields = typeOf(`${name}Body`, body, types)
  if (fields === 'unknown') return ['body: unknown', 'files?: FormFiles', type]
  const given = needsBody(body) ? `body: ${fields}` : `body?: ${fields}`
  // Values of a form are texts: where the schema takes those, files may come along.
  return isForm(body) ? [given, 'files?: FormFiles'] : [given]
}

function failureOf(route: RouteInfo, name: string, types: TypeWriter): string {
  const { schemas, throws, idempotency } = route
  const all = Object.entries(throws).map(([status, thrown]) => thrownOf(status, thrown, name, types))
  if ((schemas.body ?? schemas.query ?? schemas.params) !== undefined) all.push('ValidationFailure')
  if (idempotency !== null) all.push('KeyFailure')
  return [...all, 'RuntimeFailure'].join(' | ')
}

function thrownOf(status: string, { codes, details }: ThrownInfo, name: string, types: TypeWriter): string {
  const code = codes.length === 0 ? 'string | undefined' : [...new Set(codes)].map(quoted).join(' | ')
  const type = details === null ? 'unknown' : typeOf(`${name}Error${status}Details`, details, types)
  if (type !== 'unknown') return `ApiError<${status}, ${code}, ${type}>`
  return codes.length === 0 ? `ApiError<${status}>` : `ApiError<${status}, ${code}>`
}
