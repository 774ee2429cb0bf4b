import type { Hook, HookKind } from '../../contracts/http-hooks.ts'
import type { EndpointOptions, ThrownAnswers } from '../../contracts/http-request.ts'
import type { Owner } from '../../contracts/owner.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { shown } from '../../core/errors/shown-path.ts'
import type { SetupFile } from '../kernel/setups.ts'
import { nameOfHook } from './answering.ts'

/** The hooks of one route, each list in the order in which it runs. */
export interface HookChain {
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
}

/** Its routes have access rules of their own. */
const OPERATORS_DOMAIN = 'system'

/** The hooks that plugins, domains and the application have registered in one thread. */
export class Hooks {
  readonly #application: Hook[] = []
  readonly #ofDomain = new Map<string, Hook[]>()
  readonly #ofPlugin = new Map<string, Hook[]>()

  add(hook: Hook): void {
    const { owner } = hook
    if (owner.hooksOf === 'application') this.#application.push(hook)
    else if (owner.hooksOf === 'domain') push(this.#ofDomain, domainOf(owner.name), hook)
    else push(this.#ofPlugin, owner.name, hook)
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
  chainOf({ owner, options, place = '' }: GuardedRoute): HookChain | null {
    const guards = (options.guards ?? []).map((run): Hook => ({ kind: 'guard', owner, run, throws: run.throws, place }))
    const all = [...this.#wider(owner), ...guards]
    if (all.length === 0) return null
    const of = (...kinds: HookKind[]): Hook[] => all.filter(({ kind }) => kinds.includes(kind))
    return { before: of('before', 'guard'), after: of('after').reverse(), onError: of('onError').reverse() }
  }

  /** What a route throws, with what its hooks throw; undefined for nothing. */
  throwsOf(route: GuardedRoute): ThrownAnswers | undefined {
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
    if (first === undefined) return
    throw new HeddleError(
      'HTTP_HOOK_INVALID',
      `${method} ${path} has idempotency, and ${nameOfHook(first)} may know its caller, which the runtime does not: somebody else's stored answer would be sent. ` +
        'Say whose it is: `idempotencyScope: (context) => …`, or a text for all where guards know nobody',
    )
  }

  #wider({ name }: Owner): Hook[] {
    const domain = domainOf(name)
    const application = domain === OPERATORS_DOMAIN ? [] : this.#application
    return [...application, ...(this.#ofDomain.get(domain) ?? []), ...(this.#ofPlugin.get(name) ?? [])]
  }
}

const domainOf = (plugin: string): string => plugin.split('.', 1)[0]!

function push(lists: Map<string, Hook[]>, key: string, hook: Hook): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [hook])
  else list.push(hook)
}
