import type { Method } from './http.ts'
import type { IdentityScheme } from './http-hooks.ts'
import type { BodyKind } from './request-body.ts'

/** A JSON Schema of draft 2020-12. */
export type JsonSchema = { [keyword: string]: unknown }

/** The schemas of a route as JSON Schemas. A schema that cannot be converted accepts anything, and its description says so. */
export interface RouteSchemas {
  body?: JsonSchema
  query?: JsonSchema
  params?: JsonSchema
  response?: JsonSchema
}

/** An answer that a route throws. */
export interface ThrownInfo {
  description: string | null
  codes: string[]
  /** JSON Schema of its `details`; null: they are not documented. */
  details: JsonSchema | null
}

/** A route that is being served. */
export interface RouteInfo {
  plugin: string
  method: Method
  /** The template, as it was registered: `/users/:id`, `/files/*`. */
  path: string
  is_stream: boolean
  /** The route is a WebSocket. */
  is_socket: boolean
  /** Which threads answer it. */
  host: 'primary' | 'lanes'
  /** Milliseconds until a request is answered with 504; 0: never. */
  timeout_ms: number
  tags: string[]
  summary: string | null
  description: string | null
  /** The route requires a token. */
  has_auth: boolean
  /** How a client says who it is, where `http.identify` is asked and tells: any one of these. Null: it does not. */
  security: { schemes: IdentityScheme[]; is_required: boolean } | null
  /** Whether requests may or must have an `Idempotency-Key`; null: it means nothing. */
  idempotency: 'optional' | 'required' | null
  /** The handler gets the body as it came, of any content type. */
  has_raw_body: boolean
  /** The handler reads the body while it comes: its bytes, or the parts of a form. Null: it gets the whole body. */
  streamed_body: BodyKind | null
  schemas: RouteSchemas
  /** By status. */
  throws: Record<string, ThrownInfo>
}
