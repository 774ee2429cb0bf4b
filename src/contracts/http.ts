// The tool `http`: routes, hooks, streams, WebSockets, their options, and the types that a handler has of its route.

import type { Awaitable, Owner, StandardSchemaV1 } from './common.ts'
import type {
  AuthValidator,
  Data,
  EndpointOptions,
  Guard,
  HookAnswer,
  HttpContext,
  RequestBody,
  ThrownAnswers,
  User,
} from './http-request.ts'

/** An answer, as `after` hooks see it. */
export interface Answer {
  readonly status: number
  /** The value that becomes JSON, the bytes of `sendBinary`, or undefined for an answer without a body and for files. */
  readonly body: unknown
}

/**
 * Runs after the handler, also when the answer was thrown or is a guard's. It may set headers and status, and returns nothing, or another body in
 * place of the answer's: the status stays unless it is set.
 */
export type AfterHook<Added = unknown> = (answer: Answer, context: HttpContext & Partial<Added>) => unknown

/**
 * Runs when a guard, the input, the handler or a hook has thrown. Returns nothing to leave the error as it is, an answer in its place, or throws
 * another error. The answer's status is the error's (500 for an unknown one) unless it is set.
 */
export type ErrorHook<Added = unknown> = (
  error: unknown,
  context: HttpContext & Partial<Added>,
) => Awaitable<HookAnswer>

/**
 * How a client says who it is, for the API documents: `bearer` is `Authorization: Bearer <token>`, `cookie` the `__Host-session` of `new Sessions`,
 * anything else a security scheme as OpenAPI has it.
 */
export type IdentityScheme = 'bearer' | 'cookie' | { readonly type: string; readonly [field: string]: unknown }

/** Of `http.identify`. */
export interface IdentifyOptions {
  schemes?: readonly IdentityScheme[]
}

/** Which of a request's moments a hook is for. */
export type HookKind = 'identify' | 'guard' | 'before' | 'after' | 'onError'

/** A hook as a thread registers it. */
export interface Hook {
  readonly kind: HookKind
  /** Whose hook it is: `this` is its instance. */
  readonly owner: Owner
  // biome-ignore lint/suspicious/noExplicitAny: each kind takes its own
  readonly run: (input: any, context: any) => unknown
  readonly throws: ThrownAnswers | undefined
  /** Of `identify`. */
  readonly schemes?: readonly IdentityScheme[]
  /** Where it was registered: `domains/shop/domain.ts:12`. */
  readonly place: string
}

type ContextsOf<Guards> =
  // biome-ignore lint/suspicious/noExplicitAny: whatever the data is
  (Guards extends (data: any, context: infer Context) => unknown ? (context: Context) => void : never) extends (
    context: infer All,
  ) => void
    ? All
    : unknown

/** What the `guards` of a route add to `context`. */
type AddedBy<Options> = Options extends { guards: readonly (infer Guards)[] } ? ContextsOf<Guards> : unknown

/** One WebSocket client. It stays in one thread from its handshake to its end, so state that a plugin keeps about it there is always found again. */
export interface Socket {
  /** Unique over all replicas and never used again: `ws_` and a time-ordered id. */
  readonly id: string
  /** Of the handshake: query and path parameters, or with a `query` or `params` schema what it has validated; and `_auth`. */
  readonly data: Data
  /** Request id of the handshake. Whatever the socket's handlers publish or log carries it. */
  readonly requestId: string
  /** Aborted when either side has closed the socket, before `close` runs. */
  readonly signal: AbortSignal
  /**
   * Sends a string as text, bytes as a binary message, anything else as JSON text. Does nothing when the socket is closed.
   * A client that leaves 1 MiB unread is disconnected.
   * @returns false when 256 KiB are unread or the socket is closed: wait for `drained` before sending more
   */
  send(message: unknown): boolean
  /** Resolves when more can be sent, or when the socket is closed. */
  drained(): Promise<void>
  /**
   * Closes the socket after everything that was sent. Messages that were received but not handled yet are dropped.
   * @param code 1000 to 1003, 1007 to 1014 or 3000 to 4999. Default 1000
   * @param reason at most 123 bytes of UTF-8
   * @throws RangeError for another code or a longer reason
   */
  close(code?: number, reason?: string): void
}

/** The handlers of one socket run one after another: `open`, then `message` for each message, then `close`. */
export interface SocketHandlers<Added = unknown> {
  /** Called after the handshake. An error closes the socket with 1011. */
  open?(socket: Socket, data: Data, context: HttpContext & Added): unknown
  /** Gets text as a string and binary as bytes. An error closes the socket with 1011. */
  message?(socket: Socket, message: string | Uint8Array): unknown
  /** Called when either side has closed the socket. Code 1006: the connection ended without a close message. */
  close?(socket: Socket, code: number, reason: string): unknown
}

type DocumentedOptions = Pick<EndpointOptions, 'tags' | 'summary' | 'description' | 'guards' | 'throws'>

/** `guards` run, and `query` and `params` are checked, before the handshake: what they refuse is answered instead of it. */
export interface SocketOptions extends DocumentedOptions, Pick<EndpointOptions, 'query' | 'params'> {
  /** Makes the handshake require a token: `Authorization: Bearer <token>`, or `Sec-WebSocket-Protocol: bearer, <token>`. */
  authValidator?: AuthValidator
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

/** Of a route: `ALL` is that of `http.mount`, which takes each of them. */
export type RouteMethod = Method | 'ALL'

/**
 * Answers a request as the Fetch standard has it: what Hono, tRPC, better-auth, graphql-yoga and MCP servers are made of.
 * @param request with the whole address, and `signal`, which is aborted when the client has left or the time is up
 * @param context of the same request: who calls, and what guards have added
 */
export type FetchHandler<Added = unknown> = (request: Request, context: HttpContext & Added) => Awaitable<Response>

/** Of `http.mount`. */
export interface MountOptions
  extends DocumentedOptions,
    Pick<EndpointOptions, 'authValidator' | 'timeoutMs' | 'maxBytes'> {
  /**
   * Pages of all origins reach the handler, with their preflights, and `HTTP_CORS_ORIGINS` does not hold for it: its own library looks who asks. For an
   * identity provider that sends its answer as a form. Default false.
   */
  crossOrigin?: boolean
  /** The handler gets the path without the prefix. Default false: it gets the address that the client knows. */
  stripPrefix?: boolean
}

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

type StreamOptions = DocumentedOptions & Pick<EndpointOptions, 'authValidator'>

/** A handler whose `data`, `context` and answer are typed by its route. */
type RouteHandler<Path extends string, Options extends EndpointOptions, Added = unknown> = (
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
   * Gives all requests under a prefix (`/`, `/api`), of any method, to a fetch handler. It is one route, `ALL /api/*`. A route of its own path beats it.
   * Bodies come and answers go while they are made, under the bounds of streamed ones. WebSockets are not among them.
   * @param handler a function, or an object whose method `fetch` it is
   * @throws HTTP_PATH_INVALID, HTTP_ROUTE_TAKEN
   */
  mount<Options extends MountOptions = MountOptions>(
    prefix: string,
    handler: FetchHandler<Added & AddedBy<Options>> | { fetch: FetchHandler<Added & AddedBy<Options>> },
    options?: Options,
  ): void
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

/** A route as a plugin registers it. */
export type Route = {
  owner: Owner
  method: RouteMethod
  path: string
  options: EndpointOptions
  /** Where it was registered; only with guards. */
  place?: string
} & RouteCode

/** What runs for the requests of a route. */
export type RouteCode =
  | {
      kind: 'endpoint'
      handler: Handler
      /** The runtime's own handler of a folder. */
      isFolder?: true
      /** Pages of other origins may use it. */
      crossOrigin?: boolean
    }
  | { kind: 'stream'; handler: StreamHandler }
  | { kind: 'socket'; handlers: SocketHandlers }

export type Endpoint = Extract<Route, { kind: 'endpoint' }>

/** A fetch handler as a thread registers it. */
export interface FetchMount {
  owner: Owner
  /** Without a trailing slash; empty for the root. */
  prefix: string
  handler: FetchHandler
  options: EndpointOptions
  stripPrefix: boolean
  crossOrigin: boolean
}

/** A folder of files as a thread registers it. */
export interface StaticMount {
  owner: Owner
  /** Without a trailing slash; empty for the root. */
  prefix: string
  /** Absolute, without symbolic links. */
  directory: string
}

/**
 * The type of a handler's `data`, derived from its route: the output of its schemas, the parameters of its path, and the claims
 * that its `authValidator` returns. Without any schema it may have any further key.
 */
type RouteData<Path extends string, Options extends EndpointOptions> = FieldsOf<Options> &
  ParamsOf<Path, Options> &
  AuthOf<Options>

type FieldsOf<Options> = Options extends
  | { query: StandardSchemaV1 }
  | { body: StandardSchemaV1 }
  | { params: StandardSchemaV1 }
  ? OutputOf<Options, 'query'> & OutputOf<Options, 'body'>
  : Data

/** An output that is not an object, for example an array, is not part of `data`: it is `context.body`. */
type OutputOf<Options, Key extends string> =
  Options extends Record<Key, infer Schema extends StandardSchemaV1>
    ? AsFields<NonNullable<Schema['~standard']['types']>['output']>
    : unknown
type AsFields<Output> = Output extends readonly unknown[] ? unknown : Output extends object ? Output : unknown

type ParamsOf<Path extends string, Options> = Options extends { params: StandardSchemaV1 }
  ? OutputOf<Options, 'params'>
  : { [Name in ParamNames<Path>]: string }

type ParamNames<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? ParamName<Segment> | ParamNames<Rest>
  : ParamName<Path>
type ParamName<Segment extends string> = Segment extends `:${infer Name}` ? Name : Segment extends '*' ? '*' : never

type AuthOf<Options> = Options extends { authValidator: (token: string) => infer Claims }
  ? { _auth: NonNullable<Awaited<Claims>> }
  : unknown

/**
 * What a handler may return: on a route with a `response` schema a value whose JSON has that shape, the envelope of a failure, undefined
 * after `redirect` and `sendBinary` and for a status without a body, or what is streamed. Otherwise anything.
 */
type RouteAnswer<Options> = Options extends { response: infer Schema extends StandardSchemaV1 }
  ? Awaitable<
      JsonSource<NonNullable<Schema['~standard']['types']>['input']> | Failure | AsyncIterable<unknown> | undefined
    >
  : unknown

interface Failure {
  success: boolean
  error: string
}

/**
 * A value that becomes this in JSON. What a literal or an enum may be is left to the check at run time: the type that TypeScript infers for
 * the `success: true` of a method is `boolean`.
 */
type JsonSource<Json> = 0 extends 1 & Json
  ? Json
  : unknown extends Json
    ? Json
    : Json extends string
      ? string | { toJSON(): string }
      : Json extends number
        ? number
        : Json extends boolean
          ? boolean
          : Json extends object
            ? { [Key in keyof Json]: JsonSource<Json[Key]> | (IsOptional<Json, Key> extends true ? undefined : never) }
            : Json

type IsOptional<Json, Key extends keyof Json> = Partial<Pick<Json, Key>> extends Pick<Json, Key> ? true : false
