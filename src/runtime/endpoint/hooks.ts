import type { Hook, HookKind } from '../../contracts/http-hooks.ts'
import type { EndpointOptions, ThrownAnswers, User } from '../../contracts/http-request.ts'
import type { Owner } from '../../contracts/owner.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { contractText } from '../../core/schemas/route-contract.ts'
import type { SetupFile } from '../kernel/setups.ts'
import { nameOfHook } from './answering.ts'
import type { RequestContext } from './context.ts'
import { mayReadUser } from './user-use.ts'

/** The hooks of one route, each list in the order in which it runs. */
export interface HookChain {
  /** Says who calls; null where nothing reads it, or nobody knows. */
  readonly identify: Hook | null
  /** Before hooks and guards. */
  readonly before: readonly Hook[]
  readonly after: readonly Hook[]
  readonly onError: readonly Hook[]
}

/** What a route has of its own. */
interface GuardedRoute {
  readonly owner: Owner
  readonly options: EndpointOptions
  readonly place?: string
  /** Null of a stream or a WebSocket. */
  readonly handler?: unknown
  readonly isFolder?: true
}

/** Its routes have access rules of their own. */
const OPERATORS_DOMAIN = 'system'

/** The hooks that plugins, domains and the application have registered in one thread. */
export class Hooks {
  /** Says in a test who calls, in place of `identify`; undefined: what that says. Null outside of tests. */
  userInstead: (() => User | null | undefined) | null = null
  readonly #application: Hook[] = []
  readonly #ofDomain = new Map<string, Hook[]>()
  readonly #ofPlugin = new Map<string, Hook[]>()

  /** @throws HTTP_HOOK_INVALID for a second one that says who calls */
  add(hook: Hook): void {
    const { owner, kind } = hook
    const list = this.#listOf(owner)
    const first = kind === 'identify' ? list.find((each) => each.kind === kind) : undefined
    if (first !== undefined)
      throw new HeddleError('HTTP_HOOK_INVALID', `identify: who calls is said once, and was at ${first.place}`)
    list.push(hook)
  }

  #listOf({ hooksOf, name }: Owner): Hook[] {
    if (hooksOf === 'application') return this.#application
    return hooksOf === 'domain' ? listIn(this.#ofDomain, domainOf(name)) : listIn(this.#ofPlugin, name)
  }

  /** Lets no route of a domain, or of the application, be served: what should guard it did not boot. */
  bar({ hooksOf, name, path }: Pick<SetupFile, 'hooksOf' | 'name' | 'path'>): void {
    const place = shown(path)
    const run = (): never => {
      throw new HeddleError('PLUGIN_UNGUARDED', `${place} did not boot`)
    }
    this.add({ kind: 'before', owner: { name, instance: undefined, hooksOf }, run, throws: undefined, place })
  }

  /** All hooks of a route; null when it has none. Call it when all hooks are registered. */
  chainOf(route: GuardedRoute): HookChain | null {
    const { owner, options, place = '' } = route
    const guards = (options.guards ?? []).map((run): Hook => ({ kind: 'guard', owner, run, throws: run.throws, place }))
    const all = [...this.#wider(owner), ...guards]
    const of = (...kinds: HookKind[]): Hook[] => all.filter(({ kind }) => kinds.includes(kind))
    const hooks = all.filter(({ kind }) => kind !== 'identify')
    // The nearest.
    const identify = this.#instead(of('identify').at(-1), owner)
    const isAsked = identify !== undefined && (readsUser(route) || hooks.some(({ run }) => mayReadUser(run, 1)))
    if (hooks.length === 0 && !isAsked) return null
    return {
      identify: isAsked ? identify : null,
      before: of('before', 'guard'),
      after: of('after').reverse(),
      onError: of('onError').reverse(),
    }
  }

  #instead(identify: Hook | undefined, owner: Owner): Hook | undefined {
    const { userInstead } = this
    if (userInstead === null) return identify
    const run = (context: RequestContext): unknown => {
      const user = userInstead()
      return user === undefined ? (identify?.run.call(identify.owner.instance, context, context) ?? null) : user
    }
    return { kind: 'identify', throws: undefined, place: 'the test', owner, ...identify, run }
  }

  /** The contract of a route with what its hooks do; undefined where they add nothing to it. */
  contractOf(route: GuardedRoute): string | undefined {
    const throws = this.#throwsOf(route)
    const schemes = this.chainOf(route)?.identify?.schemes
    if ((throws ?? schemes) === undefined) return undefined
    const security = schemes && { schemes, isRequired: throws?.[401] !== undefined }
    return contractText({ ...route.options, ...(throws && { throws }) }, security)
  }

  /** What a route throws, with what its hooks throw; undefined for nothing. */
  #throwsOf(route: GuardedRoute): ThrownAnswers | undefined {
    const all = [...(this.chainOf(route)?.before.map(({ throws }) => throws) ?? []), route.options.throws]
    const known = all.filter((throws) => throws !== undefined)
    return known.length === 0 ? undefined : Object.assign({}, ...known)
  }

  /**
   * What guards know of the caller the runtime does not know: a stored answer would go to whoever sends its key.
   * @throws HTTP_HOOK_INVALID for such a route. Call it when the plugin has booted
   */
  requireCaller({ method, path, ...route }: GuardedRoute & { readonly method: string; readonly path: string }): void {
    const { idempotency, idempotencyScope, authValidator } = route.options
    if (idempotency === undefined || (idempotencyScope ?? authValidator) !== undefined) return
    const [first] = this.chainOf(route)?.before ?? []
    if (first === undefined || this.#wider(route.owner).some(({ kind }) => kind === 'identify')) return
    throw new HeddleError(
      'HTTP_HOOK_INVALID',
      `${method} ${path} has idempotency, and ${nameOfHook(first)} may know its caller, which the runtime does not: somebody else's stored answer would be sent. ` +
        'Say who calls with http.identify in domain.ts, app.ts or the plugin, or whose the answer is with `idempotencyScope: (context) => …`',
    )
  }

  #wider({ name }: Owner): Hook[] {
    const domain = domainOf(name)
    const application = domain === OPERATORS_DOMAIN ? [] : this.#application
    return [...application, ...(this.#ofDomain.get(domain) ?? []), ...(this.#ofPlugin.get(name) ?? [])]
  }
}

const domainOf = (plugin: string): string => plugin.split('.', 1)[0]!

/** Whether who calls matters to a route itself. */
function readsUser({ handler, options, isFolder }: GuardedRoute): boolean {
  const { idempotency, idempotencyScope } = options
  if (isFolder) return false
  if (typeof handler !== 'function' || mayReadUser(handler, 1)) return true
  return idempotency !== undefined && (idempotencyScope === undefined || mayReadUser(idempotencyScope, 0))
}

function listIn(lists: Map<string, Hook[]>, key: string): Hook[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}
