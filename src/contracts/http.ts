import type { Data, EndpointOptions, HttpContext } from './http-request.ts'
import type { Owner } from './owner.ts'
import type { RouteData } from './route-data.ts'
import type { SocketHandlers, SocketOptions } from './web-socket.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

/** Returns the JSON body of the answer. The status is 200, or 400 when the body has `success: false`; `setStatus` overrides both. */
export type Handler = (data: Data, context: HttpContext) => unknown | Promise<unknown>

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
   * The types of the handler's `data` follow from the path and from the schemas of the options.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN (the plugin that registers second is `DEAD` and the error names the first)
   */
  addEndpoint<Path extends string, Options extends EndpointOptions = EndpointOptions>(
    path: Path,
    method: Method | Lowercase<Method>,
    handler: (data: RouteData<Path, Options>, context: HttpContext) => unknown,
    options?: Options,
  ): void
  /** Registers a stream of server-sent events (GET). It sends a comment line every 15 s; a client that leaves 1 MiB unread is disconnected. */
  addStream(
    path: string,
    handler: StreamHandler,
    options?: Pick<EndpointOptions, 'tags' | 'authValidator' | 'summary'>,
  ): void
  /**
   * Registers a WebSocket (RFC 6455). The token is checked before the handshake. A browser from another origin that is not among
   * `HTTP_CORS_ORIGINS` is answered with 403, a request without upgrade with 426.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN
   */
  addWebSocket(path: string, handlers: SocketHandlers, options?: SocketOptions): void
  /**
   * Serves the files of a folder under a prefix (`/`, `/assets`). The lanes serve them, also when the plugin runs in the primary.
   * Links that lead out of the folder and names that begin with a dot are not served.
   * @param directory absolute, relative to where the process was started, or a `file:` URL
   * @throws HTTP_PATH_INVALID for an invalid prefix or a folder that does not exist, HTTP_ROUTE_TAKEN
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
  /** Without a trailing slash; empty for the root. */
  prefix: string
  /** Absolute, without symbolic links. */
  directory: string
}
