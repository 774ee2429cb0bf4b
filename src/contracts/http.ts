import type { Awaitable } from './awaitable.ts'
import type { AddedBy, AfterHook, ErrorHook, Guard, IdentifyOptions } from './http-hooks.ts'
import type { Data, EndpointOptions, HttpContext, ThrownAnswers, User } from './http-request.ts'
import type { Owner } from './owner.ts'
import type { RequestBody } from './request-body.ts'
import type { RouteAnswer } from './route-answer.ts'
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
export type StreamHandler<Added = unknown> = (
  data: Data,
  stream: SseStream,
  context: HttpContext & Added,
) => unknown | Promise<unknown>

export type StreamOptions = Pick<
  EndpointOptions,
  'tags' | 'authValidator' | 'summary' | 'description' | 'guards' | 'throws'
>

/** A handler whose `data`, `context` and answer are typed by its route. */
export type RouteHandler<Path extends string, Options extends EndpointOptions, Added = unknown> = (
  data: RouteData<Path, Options>,
  context: HttpContext<RequestBody<Options>> & Added & AddedBy<Options>,
) => RouteAnswer<Options>

/** `addEndpoint` for one method: the path, the options where there are any, the handler. */
export interface AddRoute<Added = unknown> {
  <Path extends string>(path: Path, handler: RouteHandler<Path, EndpointOptions, Added>): void
  <Path extends string, Options extends EndpointOptions>(
    path: Path,
    options: Options,
    handler: RouteHandler<Path, Options, Added>,
  ): void
}

/** `Added` is what the hooks of the plugin, its domain and the application add to `context`. */
export interface Http<Added = unknown> {
  /**
   * Registers an endpoint. Paths: `/users/:id`, trailing wildcard `/files/*`.
   * The types of the handler's `data` follow from the path and from the schemas of the options, and that of what it returns from `response`.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN (the plugin that registers second is `DEAD` and the error names the first)
   */
  addEndpoint<Path extends string, Options extends EndpointOptions = EndpointOptions>(
    path: Path,
    method: Method | Lowercase<Method>,
    handler: RouteHandler<Path, Options, Added>,
    options?: Options,
  ): void
  readonly get: AddRoute<Added>
  readonly post: AddRoute<Added>
  readonly put: AddRoute<Added>
  readonly patch: AddRoute<Added>
  readonly delete: AddRoute<Added>
  /** Registers a stream of server-sent events (GET). It sends a comment line every 15 s; a client that leaves 1 MiB unread is disconnected. */
  addStream<Options extends StreamOptions = StreamOptions>(
    path: string,
    handler: StreamHandler<Added & AddedBy<Options>>,
    options?: Options,
  ): void
  /**
   * Registers a WebSocket (RFC 6455). The token is checked before the handshake. A browser from another origin that is not among
   * `HTTP_CORS_ORIGINS` is answered with 403, a request without upgrade with 426.
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN
   */
  addWebSocket(path: string, handlers: SocketHandlers<Added>, options?: SocketOptions): void
  /**
   * Serves the files of a folder under a prefix (`/`, `/assets`). The lanes serve them, also when the plugin runs in the primary.
   * Links that lead out of the folder and names that begin with a dot are not served.
   * @param directory absolute, relative to where the process was started, or a `file:` URL
   * @throws HTTP_PATH_INVALID for an invalid prefix or a folder that does not exist, HTTP_ROUTE_TAKEN
   */
  mountStatic(prefix: string, directory: string | URL): void
  /**
   * Says who calls: `context.user` of all routes of the plugin; in `domain.ts` of the domain, in `app.ts` of all domains but `system`. The nearest
   * one counts, and each says it once. It runs before the guards, once a request at most, and only where something may read `context.user`: a guard,
   * a hook, the handler, or a key that is to be somebody's (`idempotency`).
   * @param resolve returns the user, or null for a stranger; what it throws is the answer
   * @returns `http`, which knows the type of `context.user`
   * @throws HTTP_HOOK_INVALID after the boot, for a second one, or for something else than a function
   */
  identify<Caller extends User>(
    resolve: (context: HttpContext) => Awaitable<Caller | null>,
    options?: IdentifyOptions,
  ): Http<Omit<Added, 'user'> & { readonly user: Caller | null }>
  /**
   * Registers a hook that runs before the handlers of all routes of the plugin, its streams, WebSockets and folders too; in `domain.ts` of all
   * routes of the domain, in `app.ts` of all domains but `system`. The order is application, domain, plugin, `guards` of the route.
   * @param options `throws`: what it throws, for the API documents
   * @returns `http`, which knows what the hook adds to `context`
   * @throws HTTP_HOOK_INVALID after the boot, or for something else than a function
   */
  before<More = unknown>(hook: Guard<Added & More>, options?: { throws?: ThrownAnswers }): Http<Added & More>
  /** Registers a hook that sees the answers of the same routes, in the reverse order, and may replace them. */
  after(hook: AfterHook<Added>): Http<Added>
  /** Registers a hook that gets what is thrown on the same routes, in the reverse order, and may answer it. */
  onError(hook: ErrorHook<Added>): Http<Added>
}

/** An endpoint as a thread registers it. */
export interface Endpoint {
  owner: Owner
  method: Method
  path: string
  handler: Handler
  options: EndpointOptions
  /** Where it was registered; only with guards. */
  place?: string
  /** The runtime's own handler of a folder. */
  isFolder?: true
}

/** A stream as a thread registers it. */
export interface Stream {
  owner: Owner
  path: string
  handler: StreamHandler
  options: EndpointOptions
  /** Where it was registered; only with guards. */
  place?: string
}

/** A folder of files as a thread registers it. */
export interface StaticMount {
  owner: Owner
  /** Without a trailing slash; empty for the root. */
  prefix: string
  /** Absolute, without symbolic links. */
  directory: string
}
