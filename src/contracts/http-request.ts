// One request as its handler sees it: context, cookies, files, bodies.

import type { Awaitable, StandardSchemaV1 } from './common.ts'
import type { TransactionOptions, Tx } from './db.ts'

/** How a handler reads a body while it comes. */
export type BodyKind = 'stream' | 'multipart'

/** Bounds of what is saved to a file. */
export interface SaveOptions {
  /** Bytes at most; beyond them nothing is saved. Default: as many as the request may have. */
  maxBytes?: number
}

/** What was saved. */
export interface SavedFile {
  /** Absolute. */
  path: string
  bytes: number
}

/**
 * Bytes that are read while they come: a loop over it, `Readable.from(it)` or `ReadableStream.from(it)`. Once: it has one reader. The client
 * is read as fast as this is. Leaving the loop gives up the rest.
 *
 * Reading throws HTTP_BODY_TOO_LARGE (413) beyond `maxBytes`, HTTP_REQUEST_TIMEOUT (408) when the client sends too slowly, and
 * HTTP_BODY_BROKEN when it has left or the request was answered. What of it a handler does not catch is the answer.
 */
export interface ByteStream extends AsyncIterable<Buffer> {
  /**
   * Writes the rest to a file, under another name in the same folder until all of it is there: whoever opens the path gets the whole file or
   * the one before it. When it fails, nothing stays.
   * @param path absolute, relative to where the process was started, or a `file:` URL. Never a name that a client sends
   * @throws HTTP_BODY_TOO_LARGE beyond `maxBytes`
   */
  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile>
  /** The rest in memory. @param maxBytes default 1 MiB @throws HTTP_BODY_TOO_LARGE beyond it */
  bytes(maxBytes?: number): Promise<Buffer>
}

/** `context.body` of a route with `body: 'stream'`: the bytes as they come, of any content type. */
export interface BodyStream extends ByteStream {
  /** Bytes that were read so far. */
  readonly bytesRead: number
}

/** One part of a multipart form. What is not read of it is skipped when the next one is asked for. */
export interface BodyPart extends ByteStream {
  /** Name of the form's field; several parts may have the same. */
  readonly field: string
  /**
   * The name that the client gave, without folders and control characters; it may be empty, and is never a path to write to. Null for a part
   * that is no file.
   */
  readonly filename: string | null
  /** The content type that the client gave, which proves nothing. */
  readonly type: string
  /** The rest as UTF-8. @param maxBytes default 1 MiB @throws HTTP_BODY_TOO_LARGE beyond it */
  text(maxBytes?: number): Promise<string>
}

/** `context.body` of a route with `body: 'multipart'`: the parts of the form in their order. */
export interface BodyParts extends AsyncIterable<BodyPart> {}

/** The type of `context.body`, derived from the options of a route. */
export type RequestBody<Options> = Options extends { body: 'stream' }
  ? BodyStream
  : Options extends { body: 'multipart' }
    ? BodyParts
    : unknown

// biome-ignore lint/suspicious/noExplicitAny: the input of a route without a schema is whatever the client sent
export type Data = Record<string, any>

/**
 * Who sends a request under `/system`: the holder of `SYSTEM_TOKEN`, of `SYSTEM_READ_TOKEN`, or anyone who reaches it, where neither is
 * set.
 */
export type Operator = 'token' | 'read-token' | 'anyone'

/** Who calls: the user whom `http.identify` names. */
export interface User {
  /** Never the same for two of them. */
  readonly id: string
}

/**
 * One request, as its handler sees it. Valid until the handler has settled.
 * @typeParam Body of a route with `body: 'stream'` a `BodyStream`, with `body: 'multipart'` `BodyParts`
 */
export interface HttpContext<Body = unknown> {
  readonly method: string
  /** The path as the client sent it, without the query. */
  readonly path: string
  /** The template that matched, for example `/users/:id`. */
  readonly route: string
  /**
   * The query as it came, which no schema has checked: texts, and a list where a name is repeated. Empty without one.
   * @throws HTTP_BAD_REQUEST when it is malformed: a guard may be the first to read it
   */
  readonly query: Readonly<Record<string, string | string[]>>
  /** Names in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** The cookies that came, by name, decoded. Anybody can have written them: for those that only this service writes see `signedCookie`. */
  readonly cookies: Readonly<Record<string, string>>
  /** Address of the client: of the connection, or what the proxies of `HTTP_TRUSTED_PROXIES` say. */
  readonly ip: string
  /** `https` if a proxy of `HTTP_TRUSTED_PROXIES` says so in `x-forwarded-proto`, else `http`. */
  readonly scheme: 'http' | 'https'
  readonly requestId: string
  /** Set for a route under `/system` that the primary serves. Null for a stranger, who reaches only its health and its login; else null. */
  readonly operator: Operator | null
  /**
   * Who calls, as `http.identify` of the plugin, its domain or the application says; on a route with `authValidator` and without that, the `sub` of
   * its claims is the `id`. Null for a stranger, and where nothing tells.
   */
  readonly user: User | null
  /**
   * The parsed value of a JSON body that is not an object; the bytes of a body of any other type.
   * Undefined for a JSON object, a form and multipart, whose fields are in `data`, and on a route with `rawBody`. On a route with a schema of
   * `query` or `params` and none of `body`, it has these fields, which no schema has checked.
   * On a route with `body: 'stream'` or `'multipart'` it is read while it comes.
   */
  readonly body: Body
  /** The files of a multipart form, in the order in which they came. No schema has checked them. */
  readonly files: readonly UploadedFile[]
  /**
   * The bytes of the body exactly as they came, whatever was parsed of them; empty without a body, and where it is streamed. Signatures are
   * of these.
   */
  readonly rawBody: Buffer
  /** Aborted when the client has disconnected or the request has timed out. */
  readonly signal: AbortSignal
  /** @throws HTTP_STATUS_INVALID outside of 200 to 599 */
  setStatus(status: number): void
  /** @throws HTTP_HEADER_INVALID for a name that is not a token, or a value with control characters */
  setHeader(name: string, value: string): void
  /** Sets HttpOnly, Secure and SameSite=Lax unless the options say otherwise. */
  setCookie(name: string, value: string, options?: CookieOptions): void
  /** The value of a cookie that was set with `signed`; null when there is none, or its signature is not of this service's secrets. */
  signedCookie(name: string): string | null
  /**
   * Answers with a `location` header. Default status 302. Percent-encodes what a URL cannot hold (`/日本`, blanks), and writes a host
   * beyond ASCII in Punycode. Escapes that are there already stay.
   * @throws HTTP_HEADER_INVALID for control characters, half a surrogate pair, or a host that is none
   */
  redirect(location: string, status?: 301 | 302 | 303 | 307 | 308): undefined
  /** Answers with bytes instead of JSON. */
  sendBinary(bytes: Uint8Array, type: string): undefined
  /**
   * Answers with a file, in pieces and at the client's pace: with `etag` and `last-modified`, 304 for who has it, and the range that is asked for.
   * @param path absolute, relative to where the process was started, or a `file:` URL. Never a path that a client sends, unless there is a `root`
   * @throws HTTP_NOT_FOUND when it is not there, or not a file
   */
  sendFile(path: string | URL, options?: FileOptions): Promise<undefined>
  /**
   * Runs `work` in a transaction of the tool `db`, as `db.transaction` does: rows and events exist together or not at all.
   *
   * On a route with `idempotency`, for a request with a key, the answer is stored in the same commit: it is what `work` returns, with the
   * status, headers and cookies that are set by then. The handler has to return the same value. What is set within `work` counts once, also when
   * the database runs it again.
   * @throws HTTP_COMMIT_INVALID for a second call of a request with a key, or a status of 500 and above; DB_ERROR, DB_CONTENDED
   */
  commit<T>(work: (tx: Tx) => Promise<T>, options?: Pick<TransactionOptions, 'isolation'>): Promise<T>
}

export interface CookieOptions {
  maxAgeSec?: number
  path?: string
  domain?: string
  httpOnly?: boolean
  secure?: boolean
  sameSite?: 'Strict' | 'Lax' | 'None'
  /** Signs name and value with `AUTH_SECRET_KEYS` or `AUTH_SECRET_KEY`: the client can read them, and not change them. Default false. */
  signed?: boolean
}

/** Of `context.sendFile`. */
export interface FileOptions {
  /** Content type. Default: by the end of the file's name. */
  type?: string
  /** Browsers save it instead of showing it: under this name, or with `true` its own. */
  download?: string | boolean
  /** Header `cache-control`. Default `no-cache`: it is asked for each time, and 304 answers. */
  cacheControl?: string
  /** The path is one within this folder: what leads out of it, and names that begin with a dot, are not found. */
  root?: string | URL
}

/** One file of a multipart form, of `context.files`. */
export interface UploadedFile {
  /** Name of the form's field; several files may have the same. */
  field: string
  /** The name that the client gave, without folders and control characters; it may be empty. Do not use it as a path to write to. */
  filename: string
  /** The content type that the client gave. */
  type: string
  bytes: Uint8Array
}

/** Returns the claims of a valid token, which become `data._auth`, or null. */
export type AuthValidator = (token: string) => Promise<object | null> | object | null

/** A status that a route or a guard throws as an `HttpError`, for the API documents. */
export interface ThrownAnswer {
  /** When it is thrown. */
  description?: string
  /** The `code`, or all of them. */
  code?: string | readonly string[]
  /** Any Standard Schema of the `details`. It documents them. */
  details?: StandardSchemaV1
}

/** By status, from 400 to 599. A text is the description. */
export type ThrownAnswers = Readonly<Record<number, string | ThrownAnswer>>

export interface EndpointOptions {
  /** Run before the handler, after those of the plugin, its domain and the application. Default: none. */
  // biome-ignore lint/suspicious/noExplicitAny: each adds its own to the context
  guards?: readonly Guard<any>[]
  tags?: string[]
  /** Makes the route require `Authorization: Bearer <token>`. */
  authValidator?: AuthValidator
  /**
   * Any Standard Schema; the handler sees its output. A mismatch is answered with 422. Or how the handler reads the body while it comes:
   * `'stream'` makes `context.body` a `BodyStream` of its bytes, `'multipart'` the `BodyParts` of a form. For POST, PUT, PATCH and DELETE.
   */
  body?: StandardSchemaV1 | BodyKind
  /** Of a body that is streamed, bytes: beyond it the request is answered with 413. Default `HTTP_BODY_LIMIT`. */
  maxBytes?: number
  query?: StandardSchemaV1
  params?: StandardSchemaV1
  response?: StandardSchemaV1
  /**
   * Status of what the handler returns, 200 to 299: in the answer, the API document and the typed client. A result with `success: false` stays
   * 400; `setStatus`, redirects, answers of guards and what is thrown have their own. With 204 there is no body. Default 200.
   */
  status?: number
  /**
   * Nothing of the body is parsed, and none is refused for its content type or encoding: the handler reads `context.rawBody`. Not together
   * with `body`. Default false.
   */
  rawBody?: boolean
  /** What the handler throws as an `HttpError`: `{ 409: 'The e-mail is taken' }`. It stands in the API documents, and changes nothing else. */
  throws?: ThrownAnswers
  /**
   * Answers with status 200 have an `etag`, of their bytes unless the handler sets one, and a client that has them already gets 304. For GET.
   * The handler runs all the same. Default false.
   */
  etag?: boolean
  /** Milliseconds until the request is answered with 504. Default `HTTP_HANDLER_TIMEOUT_MS`. */
  timeoutMs?: number
  /**
   * Requests may (`optional`) or must (`required`) have the header `Idempotency-Key`. The same key and the same request again get the stored
   * answer, with `idempotency-replayed: true`, and the handler does not run. For POST, PUT, PATCH and DELETE. Default: the header means nothing.
   */
  idempotency?: 'optional' | 'required'
  /**
   * Whose a stored answer is: the text that this returns, after the guards. Default: of `context.user`, else of who has the same
   * session and token. A route with `idempotency` and guards needs `http.identify`, `authValidator` or this.
   */
  // biome-ignore lint/suspicious/noExplicitAny: guards add to the context
  idempotencyScope?: (context: any) => string
  /** How long answers are stored, milliseconds. Default 86,400,000 (a day), at most 366 days. */
  idempotencyTtlMs?: number
  /** One line, for the API documents. */
  summary?: string
  /** What there is to say beside it, as Markdown. */
  description?: string
}

/** What a hook returns: nothing to go on, or the body of an answer, as a handler does. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` has this type
export type HookAnswer = (object & { then?: never }) | undefined | void

/**
 * Runs before the handler: returns nothing to go on, an answer instead of the handler's, or throws.
 *
 * `data` has the path parameters as texts and, on a route with `authValidator`, `_auth`. The schemas run after the guards, so that a
 * stranger gets 401 before 422; `context.query` and `context.rawBody` are there.
 *
 * `Added` is what it adds to `context`, by assignment, for the guards and handlers after it.
 */
export interface Guard<Added = unknown> {
  (data: Data, context: HttpContext & Added): Awaitable<HookAnswer>
  /** For the API documents of its routes. */
  readonly throws?: ThrownAnswers
}
