import type { EndpointOptions } from '../../contracts/http-request.ts'
import type { RouteSchemas } from '../../contracts/route-info.ts'
import { jsonSchemaOf } from './schema-conversion.ts'

/** The schemas of a route, and which headers it wants. */
export interface RouteContract {
  hasAuth: boolean
  idempotency?: 'optional' | 'required' | undefined
  hasRawBody?: boolean | undefined
  schemas: RouteSchemas
}

/**
 * The contract of a route as JSON text, for threads that do not have its schemas; undefined when it is empty.
 * Text is small and crosses threads unchanged; it is parsed only where documents are written.
 */
export function contractText(options: EndpointOptions): string | undefined {
  const { authValidator, idempotency, rawBody, body, query, params, response } = options
  if (!(authValidator || idempotency || rawBody || body || query || params || response)) return undefined
  const schemas: RouteSchemas = {}
  if (body) schemas.body = jsonSchemaOf(body, 'http')
  if (query) schemas.query = jsonSchemaOf(query, 'http')
  if (params) schemas.params = jsonSchemaOf(params, 'http')
  if (response) schemas.response = jsonSchemaOf(response, 'http')
  const contract: RouteContract = { hasAuth: authValidator !== undefined, idempotency, hasRawBody: rawBody, schemas }
  return JSON.stringify(contract)
}

export function readContract(text: string | undefined): RouteContract {
  return text === undefined ? { hasAuth: false, schemas: {} } : (JSON.parse(text) as RouteContract)
}
