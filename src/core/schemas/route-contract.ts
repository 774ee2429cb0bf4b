// The contract of a route as text.
import type { IdentityScheme } from '../../contracts/http.ts'
import type { BodyKind, EndpointOptions, ThrownAnswers } from '../../contracts/http-request.ts'
import type { RouteSchemas, ThrownInfo } from '../../contracts/registry.ts'
import { jsonSchemaOf } from './json-schema.ts'

/** How a client says who it is. */
interface RouteSecurity {
  readonly schemes: readonly IdentityScheme[]
  /** Strangers are refused. */
  readonly isRequired: boolean
}

/** The schemas of a route, and which headers it wants. */
interface RouteContract {
  hasAuth: boolean
  security?: RouteSecurity | undefined
  idempotency?: 'optional' | 'required' | undefined
  hasRawBody?: boolean | undefined
  streamedBody?: BodyKind
  schemas: RouteSchemas
  throws?: Record<string, ThrownInfo> | undefined
}

/**
 * The contract of a route as JSON text, for threads that do not have its schemas; undefined when it is empty.
 * Text is small and crosses threads unchanged; it is parsed only where documents are written.
 */
export function contractText(options: EndpointOptions, security?: RouteSecurity): string | undefined {
  const { authValidator, idempotency, rawBody, body, query, params, response, throws } = options
  if (!(authValidator || idempotency || rawBody || body || query || params || response || throws || security))
    return undefined
  const schemas: RouteSchemas = {}
  if (typeof body === 'object' || typeof body === 'function') schemas.body = jsonSchemaOf(body, 'http')
  if (query) schemas.query = jsonSchemaOf(query, 'http')
  if (params) schemas.params = jsonSchemaOf(params, 'http')
  if (response) schemas.response = jsonSchemaOf(response, 'http')
  const contract: RouteContract = { hasAuth: authValidator !== undefined, idempotency, hasRawBody: rawBody, schemas }
  if (security) contract.security = security
  if (typeof body === 'string') contract.streamedBody = body
  if (throws) contract.throws = thrownInfo(throws)
  return JSON.stringify(contract)
}

function thrownInfo(throws: ThrownAnswers): Record<string, ThrownInfo> {
  const infos: Record<string, ThrownInfo> = {}
  for (const [status, thrown] of Object.entries(throws)) {
    const { description, code, details } = typeof thrown === 'string' ? { description: thrown } : thrown
    infos[status] = {
      description: description ?? null,
      codes: code === undefined ? [] : [code].flat(),
      details: details === undefined ? null : jsonSchemaOf(details, 'http'),
    }
  }
  return infos
}

export function readContract(text: string | undefined): RouteContract {
  return text === undefined ? { hasAuth: false, schemas: {} } : (JSON.parse(text) as RouteContract)
}
