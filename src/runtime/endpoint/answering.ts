import type { Answer, Hook } from '../../contracts/http-hooks.ts'
import type { Data, User } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { RequestContext } from './context.ts'
import type { Incoming } from './incoming.ts'
import { errorReply, type Reply, replyOf, replyOfThrown, statusOf, statusOfThrown } from './reply.ts'
import { checkResponse, isResponseChecked } from './response-check.ts'
import type { HookChain } from './route.ts'
import type { Route } from './run.ts'

/** An error that goes to the log, and where it was thrown. */
export interface Fault {
  thrown: unknown
  /** Empty for the handler; else like ` in its guard (domains/shop/domain.ts:12)`. */
  where: string
}

/** What the guards have decided: to go on, or an answer. */
export type GuardedOutcome = { isAnswered: false } | { isAnswered: true; result: unknown }

/** HTTP_HANDLER_TIMEOUT_MS by default, where the setting is not known. */
export const DEFAULT_TIMEOUT_MS = 30_000
/** The primary counts from when the request came, and looks at its clock now and then. */
const CLOCKS_DIFFER_MS = 50

const GO_ON: GuardedOutcome = { isAnswered: false }

/** One request of a route with hooks: runs them, and makes the answer of what they and the handler return and throw. */
export class Answering {
  readonly faults: Fault[] = []
  readonly #route: Pick<Route, 'owner' | 'options' | 'template'>
  readonly #hooks: HookChain
  readonly #incoming: Incoming
  readonly #context: RequestContext
  /** The hook that has thrown last; null when it was not a hook. */
  #thrower: Hook | null = null
  #isAfterDone = false

  constructor(
    route: Pick<Route, 'owner' | 'options' | 'template'>,
    hooks: HookChain,
    incoming: Incoming,
    context: RequestContext,
  ) {
    this.#route = route
    this.#hooks = hooks
    this.#incoming = incoming
    this.#context = context
    const timeoutMs = route.options.timeoutMs ?? context.effects?.timeoutMs ?? DEFAULT_TIMEOUT_MS
    context.hookDeadlineMs = performance.now() + timeoutMs - CLOCKS_DIFFER_MS
  }

  /** @throws what a guard throws */
  async before(claims: object | undefined): Promise<GuardedOutcome> {
    const { template } = this.#route
    const data: Data = {}
    if (template.hasParameters) template.read(this.#incoming.path, data)
    if (claims !== undefined) data._auth = claims
    if (this.#hooks.identify !== null) await this.#identify(this.#hooks.identify)
    for (const hook of this.#hooks.before) {
      const result = await this.#run(hook, data)
      // Nobody waits any more: a handler that has not begun does not begin.
      if (this.#context.isAborted) throw new HeddleError('HTTP_HANDLER_TIMEOUT')
      if (result !== undefined && (typeof result !== 'object' || result === null)) {
        this.#thrower = hook
        throw new HeddleError(
          'HTTP_HOOK_INVALID',
          `It returned ${String(result)}: return nothing to go on, an object to answer, or throw an HttpError`,
        )
      }
      if (result !== undefined || this.#context.hasBody) return { isAnswered: true, result }
    }
    return GO_ON
  }

  async #identify(hook: Hook): Promise<void> {
    const context = this.#context
    const user = await this.#run(hook, context)
    if (context.isAborted) throw new HeddleError('HTTP_HANDLER_TIMEOUT')
    const id = (user as { id?: unknown } | null | undefined)?.id
    if (user !== null && (typeof id !== 'string' || id === '')) {
      this.#thrower = hook
      throw new HeddleError(
        'HTTP_HOOK_INVALID',
        `It returned ${user === undefined ? 'undefined' : `a user whose id is ${String(id)}`}: return null, or a user with a text as its id`,
      )
    }
    context.identified = user as User | null
    if (typeof id === 'string') this.#incoming.userId = id
  }

  /** The answer that a result means, after the `after` hooks. @throws HTTP_RESPONSE_INVALID */
  async reply(result: unknown): Promise<Reply> {
    const answer = await this.#after(result)
    const reply = replyOf(answer, this.#context)
    if (isResponseChecked(this.#route)) await checkResponse(this.#route, this.#incoming.method, reply)
    return reply
  }

  /** The answer to a thrown error, after the hooks for it. Never throws. */
  async failed(thrown: unknown): Promise<Reply> {
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

const NAMES = {
  identify: 'its identify',
  guard: 'its guard',
  before: 'its before hook',
  after: 'its after hook',
  onError: 'its onError hook',
}

/** `its before hook (domains/shop/domain.ts:12)` */
export const nameOfHook = ({ kind, place }: Hook): string => `${NAMES[kind]} (${place})`
export const placeOfHook = (hook: Hook): string => ` in ${nameOfHook(hook)}`
