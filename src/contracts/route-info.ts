import type { Method } from './http.ts'

/** A JSON Schema of draft 2020-12. */
export type JsonSchema = { [keyword: string]: unknown }

/** What a route's schemas say, as JSON Schemas; one that does not describe itself takes anything and says so. */
export interface RouteSchemas {
  body?: JsonSchema
  query?: JsonSchema
  params?: JsonSchema
  response?: JsonSchema
}

/** One route that is served now. */
export interface RouteInfo {
  plugin: string
  method: Method
  /** As it was registered: `/users/:id`, `/files/*`. */
  path: string
  is_stream: boolean
  /** It speaks WebSocket. */
  is_socket: boolean
  /** The thread that answers. */
  host: 'primary' | 'lanes'
  /** Milliseconds until a request is answered with 504; 0: never. */
  timeout_ms: number
  tags: string[]
  summary: string | null
  /** Whether it asks for a token. */
  has_auth: boolean
  schemas: RouteSchemas
}
