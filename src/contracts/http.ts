import type { Owner } from './owner.ts'
import type { RouteData } from './route-data.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'
import type { SocketHandlers, SocketOptions } from './web-socket.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

// biome-ignore lint/suspicious/noExplicitAny: the input of a route without a schema is whatever the client sent
export type Data = Record<string, any>

/** One request, as its handler sees it. Valid until the handler has settled. */
export interface HttpContext {
  readonly method: string
  /** The path as the client sent it, without the query. */
  readonly path: string
  /** The template that matched, for example `/users/:id`. */
  readonly route: string
  /** Names in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly ip: string
  readonly requestId: string
  /** Bytes of a body that is none of JSON object, form or multipart; the parsed value of a JSON body that is no object; else undefined. */
  readonly body: unknown
  /** Aborted when the client is gone or the time is up. */
  readonly signal: AbortSignal
  /** @throws HTTP_STATUS_INVALID outside of 200 to 599 */
  setStatus(status: number): void
  /** @throws HTTP_HEADER_INVALID for a name that is no token or a value with control characters */
  setHeader(name: string, value: string): void
  /** HttpOnly, Secure and SameSite=Lax unless told otherwise. */
  setCookie(name: string, value: string, options?: CookieOptions): void
  /** Answers with a `location` header. Default status 302. */
  redirect(location: string, status?: 301 | 302 | 303 | 307 | 308): void
  /** Answers with bytes instead of JSON. */
  sendBinary(bytes: Uint8Array, type: string): void
}

export interface CookieOptions {
  maxAgeSec?: number
  path?: string
  domain?: string
  httpOnly?: boolean
  secure?: boolean
  sameSite?: 'Strict' | 'Lax' | 'None'
}

/** One file of a multipart form: `data._files` is a list of them, in the order in which they came. */
export interface UploadedFile {
  /** Name of the form's field; several files may have the same. */
  field: string
  /** As the client says, without folders and control characters; may be empty, and anything else. Never a path to write to. */
  filename: string
  /** Content type, as the client says. */
  type: string
  bytes: Uint8Array
}

/** Returns the JSON body of the answer as it is. Status 200, 400 when it has `success: false`; `setStatus` beats both. */
export type Handler = (data: Data, context: HttpContext) => unknown | Promise<unknown>

/** Claims for a good token (they become `data._auth`), null for a bad one. */
export type AuthValidator = (token: string) => Promise<object | null> | object | null

export interface EndpointOptions {
  tags?: string[]
  /** Makes the route ask for `Authorization: Bearer <token>`. */
  authValidator?: AuthValidator
  /** Any Standard Schema; the handler sees its output. A mismatch is answered with 422. */
  body?: StandardSchemaV1
  query?: StandardSchemaV1
  params?: StandardSchemaV1
  response?: StandardSchemaV1
  /** Milliseconds until the request is answered with 504. Default `HTTP_HANDLER_TIMEOUT_MS`. */
  timeoutMs?: number
  summary?: string
}

/** One server-sent-event client. */
export interface SseStream {
  /** Sends one frame `data: <JSON>`. Nothing happens when the client is gone. */
  send(data: unknown): void
  /** Ends the stream. */
  close(): void
  /** Aborted when the client is gone or was cut off. */
  readonly signal: AbortSignal
}

/** Called once for each client. */
export type StreamHandler = (data: Data, stream: SseStream, context: HttpContext) => unknown | Promise<unknown>

export interface Http {
  /**
   * Registers an endpoint. Paths: `/users/:id`, trailing wildcard `/files/*`.
   * The handler's `data` has the types that the path and the options' schemas say.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN (the plugin that registers second is `DEAD` and the error names the first)
   */
  addEndpoint<Path extends string, Options extends EndpointOptions = EndpointOptions>(
    path: Path,
    method: Method | Lowercase<Method>,
    handler: (data: RouteData<Path, Options>, context: HttpContext) => unknown,
    options?: Options,
  ): void
  /** Registers a stream of server-sent events (GET). A comment line every 15 s; a client that leaves 1 MiB unread is cut off. */
  addStream(
    path: string,
    handler: StreamHandler,
    options?: Pick<EndpointOptions, 'tags' | 'authValidator' | 'summary'>,
  ): void
  /**
   * Registers a WebSocket (RFC 6455). The token is checked before the handshake; a browser of another origin that is not among
   * `HTTP_CORS_ORIGINS` is refused with 403, a request without upgrade with 426.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN
   */
  addWebSocket(path: string, handlers: SocketHandlers, options?: SocketOptions): void
  /**
   * Serves the files of a folder under a prefix (`/`, `/assets`), from the lanes, whichever thread the plugin lives in.
   * Links that lead out of the folder and names that begin with a dot are not served.
   * @param directory absolute, relative to where the process was started, or a `file:` URL
   * @throws HTTP_PATH_INVALID for a prefix that is none or a folder that is not there, HTTP_ROUTE_TAKEN
   */
  mountStatic(prefix: string, directory: string | URL): void
}

/** An endpoint as a thread registers it. */
export interface Endpoint {
  owner: Owner
  method: Method
  path: string
  handler: Handler
  options: EndpointOptions
}

/** A stream as a thread registers it. */
export interface Stream {
  owner: Owner
  path: string
  handler: StreamHandler
  options: EndpointOptions
}

/** A folder of files as a thread registers it. */
export interface StaticMount {
  owner: Owner
  /** Without a slash at its end; empty for the root. */
  prefix: string
  /** Absolute, without symbolic links. */
  directory: string
}
