import type { Awaitable } from './awaitable.ts'
import type { Http } from './http.ts'
import type { Data, HttpContext, ThrownAnswers } from './http-request.ts'
import type { Owner } from './owner.ts'
import type { Tools } from './tools.ts'

/** What a hook returns: nothing to go on, or the body of an answer, as a handler does. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` has this type
export type HookAnswer = (object & { then?: never }) | undefined | void

/**
 * Runs before the handler: returns nothing to go on, an answer instead of the handler's, or throws.
 *
 * `data` has the path parameters as texts and, on a route with `authValidator`, `_auth`. Query and body are read after the guards, so that a
 * stranger gets 401 before 422; `context.rawBody` is there.
 *
 * `Added` is what it adds to `context`, by assignment, for the guards and handlers after it.
 */
export interface Guard<Added = unknown> {
  (data: Data, context: HttpContext & Added): Awaitable<HookAnswer>
  /** For the API documents of its routes. */
  readonly throws?: ThrownAnswers
}

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

/** What `domain.ts` and `app.ts` export by default: it registers hooks, and returns `http` as they make it. */
export type HookSetup = (tools: Tools) => unknown

/**
 * The tools of a plugin whose domain (or application) has hooks: `http` knows what they add to `context`.
 * `constructor({ db, http }: ToolsIn<typeof shop>)`, with `import type shop from '../domain.ts'`.
 */
// biome-ignore lint/suspicious/noExplicitAny: a setup may want the tools of a wider one
export type ToolsIn<Setup extends (tools: any) => unknown> = Omit<Tools, 'http'> & {
  http: Awaited<ReturnType<Setup>> extends Http<infer Added> ? Http<Added> : Http
}

type ContextsOf<Guards> =
  // biome-ignore lint/suspicious/noExplicitAny: whatever the data is
  (Guards extends (data: any, context: infer Context) => unknown ? (context: Context) => void : never) extends (
    context: infer All,
  ) => void
    ? All
    : unknown

/** What the `guards` of a route add to `context`. */
export type AddedBy<Options> = Options extends { guards: readonly (infer Guards)[] } ? ContextsOf<Guards> : unknown
