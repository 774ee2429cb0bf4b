// The way of every request that is not plain: token, hooks, input, code, and the answer that comes of them.
import type { Answer, Hook } from '../../contracts/http.ts'
import type { AuthValidator, Data, User } from '../../contracts/http-request.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { faultsOf, listed } from '../../core/schemas/standard-schema.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { RequestContext } from './context.ts'
import { readInput } from './input/input.ts'
import { errorReply, type Reply, replyOf, replyOfThrown, statusOf, statusOfThrown } from './reply.ts'
import { type HookChain, placeOfHook, type ServedRoute } from './route.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** An error that goes to the log, and where it was thrown. */
export interface Fault {
  thrown: unknown
  /** Empty for the handler; else like ` in its guard (domains/shop/domain.ts:12)`. */
  where: string
}

/**
 * Told of an error that a handler has thrown: it goes to the log, never to the client.
 * @param path of its route; behind it which hook has thrown it
 */
export type FaultLog = (path: string, plugin: string, requestId: string, thrown: unknown) => void

/** The primary counts from when the request came, and looks at its clock now and then. */
const CLOCKS_DIFFER_MS = 50

const NO_HOOKS: HookChain = { identify: null, before: [], after: [], onError: [] }

/** One request of a route: checks its token, runs its hooks, and makes the answer of what they and the code return and throw. */
export class Answering {
  readonly faults: Fault[] = []
  /** The answer of who has refused the request; null while nobody has. */
  refusal: Reply | null = null
  readonly hasHooks: boolean
  readonly #route: ServedRoute
  readonly #hooks: HookChain
  readonly #frame: RequestFrame
  readonly #context: RequestContext
  readonly #offered: string | undefined
  /** The hook that has thrown last; null when it was not a hook. */
  #thrower: Hook | null = null
  #isAfterDone = false

  /** @param offered the token of a client that cannot set the header */
  constructor(route: ServedRoute, frame: RequestFrame, context: RequestContext, offered?: string) {
    const { hooks } = route
    this.hasHooks = hooks !== null
    this.#route = route
    this.#hooks = hooks ?? NO_HOOKS
    this.#frame = frame
    this.#context = context
    this.#offered = offered
    if (hooks === null) return
    context.hookDeadlineMs = performance.now() + context.limitMs - CLOCKS_DIFFER_MS
  }

  /**
   * The answer of the code of the route, unless the request is refused before it runs. Never rejects.
   * @param once makes the answer instead, where the code runs once for each key
   */
  async answer(code: (data: Data) => unknown, once: ((data: Data) => Promise<Reply>) | null): Promise<Reply> {
    try {
      const data = await this.#data()
      if (data === null) return this.refusal!
      return once === null ? await this.reply(await code(data)) : await once(data)
    } catch (thrown) {
      return this.failed(thrown)
    }
  }

  /** The data for the code of a stream or a WebSocket; null where the request is refused. Never rejects. */
  async enter(): Promise<Data | null> {
    try {
      return await this.#data()
    } catch (thrown) {
      this.refusal = await this.failed(thrown)
      return null
    }
  }

  /** What is thrown beside an answer that is given all the same is to be told, too. */
  tellFaults(onFault: FaultLog): void {
    const { route, plugin, requestId } = this.#context
    for (const { thrown, where } of this.faults) onFault(route + where, plugin, requestId, thrown)
  }

  /** @throws HTTP_AUTH_MISSING, HTTP_AUTH_INVALID; what a guard throws, and what is wrong with the input */
  async #data(): Promise<Data | null> {
    const { authValidator } = this.#route.options
    const claims = authValidator && (await this.#authenticate(authValidator))
    if (this.hasHooks) this.refusal = await this.#before(claims)
    if (this.refusal !== null) return null
    const data = await readInput(this.#frame, this.#route, this.#context)
    if (claims !== undefined) data._auth = claims
    return data
  }

  async #authenticate(authValidator: AuthValidator): Promise<object> {
    const token = bearerToken(this.#frame) ?? this.#offered
    if (token === undefined) throw new HeddleError('HTTP_AUTH_MISSING')
    const claims: unknown = await authValidator(token)
    // A validator that returns `false` must not let anybody in: only an object means yes.
    if (typeof claims !== 'object' || claims === null) throw new HeddleError('HTTP_AUTH_INVALID')
    this.#frame.claims = claims
    this.#context.token = claims
    return claims
  }

  /** Runs the guards. @returns the answer of one of them; null to go on */
  async #before(claims: object | undefined): Promise<Reply | null> {
    const { template } = this.#route
    const data: Data = {}
    if (template.hasParameters) template.read(this.#frame.path, data)
    if (claims !== undefined) data._auth = claims
    if (this.#hooks.identify !== null) await this.#identify(this.#hooks.identify)
    for (const hook of this.#hooks.before) {
      const result = await this.#run(hook, data)
      // Nobody waits any more: a handler that has not begun does not begin.
      if (this.#context.isAborted) throw new HeddleError('HTTP_HANDLER_TIMEOUT')
      if (result !== undefined && (typeof result !== 'object' || result === null))
        this.#refuse(hook, `${String(result)}: return nothing to go on, an object to answer, or throw an HttpError`)
      if (result !== undefined || this.#context.hasBody) {
        this.#context.guardAnswers()
        return this.reply(result)
      }
    }
    return null
  }

  #refuse(hook: Hook, returned: string): never {
    this.#thrower = hook
    throw new HeddleError('HTTP_HOOK_INVALID', `It returned ${returned}`)
  }

  async #identify(hook: Hook): Promise<void> {
    const context = this.#context
    const user = await this.#run(hook, context)
    if (context.isAborted) throw new HeddleError('HTTP_HANDLER_TIMEOUT')
    const id = (user as { id?: unknown } | null | undefined)?.id
    if (user !== null && (typeof id !== 'string' || id === '')) {
      const returned = user === undefined ? 'undefined' : `a user whose id is ${String(id)}`
      this.#refuse(hook, `${returned}: return null, or a user with a text as its id`)
    }
    context.identified = user as User | null
    if (typeof id === 'string') this.#frame.userId = id
  }

  /** The answer that a result means, after the `after` hooks. @throws HTTP_RESPONSE_INVALID */
  async reply(result: unknown): Promise<Reply> {
    const reply = replyOf(this.hasHooks ? await this.#after(result) : result, this.#context)
    if (isResponseChecked(this.#route)) await checkResponse(this.#route, this.#frame.method, reply)
    return reply
  }

  /** The answer to a thrown error, after the hooks for it. Never throws. */
  async failed(thrown: unknown): Promise<Reply> {
    if (!this.hasHooks) {
      const { reply, isFault } = replyOfThrown(thrown, this.#context)
      if (isFault) this.#note(thrown)
      return reply
    }
    if (this.#context.isAborted) return errorReply('HTTP_HANDLER_TIMEOUT')
    try {
      const result = await this.#rescue(thrown)
      return replyOf(this.#isAfterDone ? result : await this.#after(result), this.#context)
    } catch (again) {
      this.#note(again)
      return errorReply('HTTP_INTERNAL')
    }
  }

  /** The result that takes the place of an error: of the first hook that answers it, else its failure envelope. */
  async #rescue(first: unknown): Promise<unknown> {
    const context = this.#context
    let thrown = first
    let where = this.#where()
    for (const hook of this.#hooks.onError) {
      const status = statusOfThrown(thrown, context)
      context.dropBody()
      try {
        const result = await this.#run(hook, thrown)
        if (result === undefined && !context.hasBody) continue
        if (context.chosenStatus === 0) context.setStatus(status)
        if (statusOf(result, context) >= 500) this.faults.push({ thrown, where })
        return result
      } catch (other) {
        thrown = other
        where = this.#where()
      }
    }
    const { reply, isFault } = replyOfThrown(thrown, context)
    if (isFault) this.faults.push({ thrown, where })
    return context.adopt(reply)
  }

  async #after(first: unknown): Promise<unknown> {
    const context = this.#context
    let result = first
    this.#isAfterDone = true
    for (const hook of this.#hooks.after) {
      const body = context.file === null ? (context.binary ?? result) : undefined
      const answer: Answer = { status: statusOf(result, context), body }
      try {
        const other = await this.#run(hook, answer)
        if (other === undefined) continue
        context.dropBinary()
        result = other
      } catch (thrown) {
        result = await this.#rescue(thrown)
      }
    }
    return result
  }

  async #run(hook: Hook, input: unknown): Promise<unknown> {
    const context = this.#context
    this.#thrower = null
    context.hook = hook
    try {
      return await hook.run.call(hook.owner.instance, input, context)
    } catch (thrown) {
      this.#thrower = hook
      throw thrown
    } finally {
      context.hook = null
    }
  }

  #note(thrown: unknown): void {
    this.faults.push({ thrown, where: this.#where() })
  }

  #where(): string {
    const hook = this.#thrower
    this.#thrower = null
    return hook === null ? '' : placeOfHook(hook)
  }
}

/** The token of the `authorization` header. Source: RFC 6750, section 2.1. */
function bearerToken(frame: RequestFrame): string | undefined {
  const authorization = frame.header('authorization')
  return authorization === undefined ? undefined : /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
}

let isDevelopment: boolean | undefined

/** In production answers go out unchecked: a client is better off with a key too many than without an answer. */
export function isResponseChecked({ options }: ServedRoute): boolean {
  if (options.response === undefined) return false
  // Not before the first request: `.env` is read after the modules were loaded.
  isDevelopment ??= readVariable('NODE_ENV') !== 'production'
  return isDevelopment
}

/**
 * Holds the JSON of a successful answer, as the client would get it, against the route's `response` schema.
 * Failures, redirects, bytes and answers without a body are not what it describes.
 * @throws HTTP_RESPONSE_INVALID that names the path and the fault
 */
async function checkResponse({ options }: ServedRoute, method: string, { status, body }: Reply): Promise<void> {
  if (options.response === undefined || status >= 300 || typeof body !== 'string') return
  const { issues } = await options.response['~standard'].validate(parseJson(body))
  if (issues === undefined) return
  const message = `what ${method} answered with ${status} does not fit its response schema: ${listed(issues)}`
  throw new HeddleError('HTTP_RESPONSE_INVALID', message, { details: faultsOf(issues) })
}
