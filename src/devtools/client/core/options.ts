export interface ClientOptions {
  /** Where the service is: `https://api.example.com`, also with a path before all routes. Default: the origin of the page. */
  baseUrl?: string | undefined
  /**
   * The bearer token, or what gives it: it is called for each request, and with `true` once more after an answer of 401. If it gives another
   * token then, the request is sent again.
   */
  token?: string | ((isRefused: boolean) => string | null | undefined | Promise<string | null | undefined>) | undefined
  /**
   * For services that know their clients by a cookie. A browser sends and keeps cookies by itself; elsewhere this client keeps them, and sends `Origin`,
   * which the service asks for against forged requests. Default false.
   */
  cookies?: boolean | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Milliseconds until an attempt without an answer counts as failed. Default 30,000; 0: never. */
  timeoutMs?: number | undefined
  /**
   * How often a request is sent again that nobody answered, or that was answered with 408, 429, 502, 503 or 504. It has to be idempotent: GET, HEAD,
   * OPTIONS, PUT and DELETE are, and so is every request with an `Idempotency-Key`. Default 2.
   */
  retries?: number | undefined
  /** If the service asks to wait longer than this, the request is not sent again. Default 20,000. */
  maxRetryWaitMs?: number | undefined
  /** Default: the global one. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Default: the global one, which Node has from 22 on; for 20 the one of the package `ws`. */
  // biome-ignore lint/suspicious/noExplicitAny: the class of any library
  WebSocket?: (new (...args: any[]) => any) | undefined
}

/** Of one request: what is not set is as the client has it. */
export interface CallOptions {
  signal?: AbortSignal | undefined
  headers?: Record<string, string> | undefined
  timeoutMs?: number | undefined
  retries?: number | undefined
}

/** Of a request that the service carries out once, however often it comes. */
export interface IdempotentOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. Default: a new one for each call, so that only its retries count as the same request. */
  idempotencyKey?: string | undefined
}

export type QueryValue = string | number | boolean | bigint | Date | null | undefined
export type Query = Record<string, QueryValue | readonly QueryValue[]>

/** A file of a form: a `File`, a `Blob`, or a name with its content. */
export type FormFile =
  | Blob
  | { name: string; content: Blob | Uint8Array | ArrayBuffer | string; type?: string | undefined }
/** By the name of the form's field. */
export type FormFiles = Record<string, FormFile | readonly FormFile[]>

/** A body that is sent as it is. One that is a stream is sent once: it cannot be repeated. */
export type RawBody = string | Uint8Array | ArrayBuffer | Blob | FormData | URLSearchParams | ReadableStream<Uint8Array>

/** The parts of any request. */
export interface Input {
  params?: Record<string, unknown> | undefined
  query?: object | undefined
  body?: unknown
  files?: FormFiles | undefined
  contentType?: string | undefined
}
