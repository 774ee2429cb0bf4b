import type { EndpointOptions } from '../../contracts/http-request.ts'
import type { RouteSchemas } from '../../contracts/route-info.ts'
import { jsonSchemaOf } from './schema-conversion.ts'

/** What a route asks of its clients and what it promises them. */
export interface RouteContract {
  hasAuth: boolean
  schemas: RouteSchemas
}

/**
 * The contract of a route as text, for threads that do not have its schemas; undefined when there is nothing to tell.
 * Text is small, crosses threads as it is, and is read only by whoever writes documentation.
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
