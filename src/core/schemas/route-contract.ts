import type { EndpointOptions } from '../../contracts/http-request.ts'
import type { RouteSchemas } from '../../contracts/route-info.ts'
import { jsonSchemaOf } from './schema-conversion.ts'

/** The schemas of a route, and whether it requires a token. */
export interface RouteContract {
  hasAuth: boolean
  schemas: RouteSchemas
}

/**
 * The contract of a route as JSON text, for threads that do not have its schemas; undefined when it is empty.
 * Text is small and crosses threads unchanged; it is parsed only where documents are written.
 */
export function contractText({ authValidator, body, query, params, response }: EndpointOptions): string | undefined {
  if (!(authValidator || body || query || params || response)) return undefined
  const schemas: RouteSchemas = {}
  if (body) schemas.body = jsonSchemaOf(body, 'http')
  if (query) schemas.query = jsonSchemaOf(query, 'http')
  if (params) schemas.params = jsonSchemaOf(params, 'http')
  if (response) schemas.response = jsonSchemaOf(response, 'http')
  return JSON.stringify({ hasAuth: authValidator !== undefined, schemas } satisfies RouteContract)
}

export function readContract(text: string | undefined): RouteContract {
  return text === undefined ? { hasAuth: false, schemas: {} } : (JSON.parse(text) as RouteContract)
}
