// A route as a thread serves it: its path, its hooks, its shape.

import type { Owner, StandardSchemaV1 } from '../../contracts/common.ts'
import type { Hook, HookKind, Route } from '../../contracts/http.ts'
import type { BodyKind, EndpointOptions, HttpContext, ThrownAnswers, User } from '../../contracts/http-request.ts'
import type { Origin, SpanAttributes } from '../../contracts/tracing.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { shown } from '../../core/errors/places.ts'
import { OPERATORS_DOMAIN } from '../../core/modules/domains.ts'
import { contractText } from '../../core/schemas/json-schema.ts'
import { METHODS } from '../../transport/frames/request-frame.ts'

/** The methods that a route answers. */
export const methodsOf = (method: string): readonly string[] => (method === 'ALL' ? METHODS : [method])

/** The paths of a route, as templates: what is under the prefix of a fetch handler, and the prefix itself. */
export const pathsOf = (method: string, path: string): string[] =>
  method === 'ALL' && path !== '/*' ? [path, path.slice(0, -2)] : [path]

/** Two routes that no request can tell apart have one in common: a method, and a path without parameter names. */
export function routeShapes(method: string, path: string): string[] {
  const shapes = pathsOf(method, path).map((each) => each.replace(/:[^/]+/g, ':'))
  return methodsOf(method).flatMap((each) => shapes.map((shape) => `${each} ${shape}`))
}

/** A route's path, ready to read parameters from a raw path that matched it. */
export class PathTemplate {
  readonly text: string
  readonly hasParameters: boolean
  readonly #segments: { index: number; name: string; isRest: boolean }[] = []

  constructor(text: string) {
    this.text = text
    text.split('/').forEach((segment, index) => {
      if (segment.startsWith(':')) this.#segments.push({ index, name: segment.slice(1), isRest: false })
      else if (segment === '*') this.#segments.push({ index, name: '*', isRest: true })
    })
    this.hasParameters = this.#segments.length > 0
  }

  /** Each segment is decoded once; a wildcard's rest stands under `*`. */
  read(path: string, into: Record<string, unknown>): void {
    let slashes = 0
    let from = 0
    for (const { index, name, isRest } of this.#segments) {
      for (; slashes < index && from >= 0; slashes++) from = path.indexOf('/', from) + 1 || -1
      const end = from < 0 || isRest ? -1 : path.indexOf('/', from)
      const raw = from < 0 ? '' : end < 0 ? path.slice(from) : path.slice(from, end)
      into[name] = raw.includes('%') ? decodeSegment(raw) : raw
    }
  }
}

function decodeSegment(raw: string): string {
  let text: string
  try {
    text = decodeURIComponent(raw)
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', 'The path has invalid percent-encoding')
  }
  if (text.includes('\0')) throw new HeddleError('HTTP_BAD_REQUEST', 'The path has a NUL')
  return text
}

/** Up to the first parameter. */
const HEAD = String.raw`^(?:async\b\s*)?(?:function\b\s*)?\*?\s*(?:#?[\w$]+\s*)?\(`
/** Names, and fields by their names. */
const SIMPLE = new RegExp(String.raw`${HEAD}([\w$\s,:{}]*)\)`)
/** `data => …` has no other parameter. */
const LONE = /^(?:async\s+)?([\w$]+)\s*=>/
/** What reaches all arguments, or hides what it calls with them. */
const REACHES_ALL = /\b(?:arguments|eval)\b|\[native code\]/
const NAME = /^[\w$]+$/
/** Fields by their names alone. */
const FIELDS = /^\{[\w$\s,:]*\}$/

/** What the text of a function says: null where its parameters are anything but names, and fields by their names. */
function textOf(code: unknown) {
  const source = Function.prototype.toString.call(code)
  const [head, list] = LONE.exec(source) ?? SIMPLE.exec(source) ?? []
  if (head === undefined || list === undefined || /\{[^{}]*\{/.test(list)) return null
  const parts = list.match(/\{[^{}]*\}|[^,{}]+/g) ?? []
  return {
    parameters: parts.map((part) => part.trim()).filter((part) => part !== ''),
    body: source.slice(head.length),
    reachesAll: REACHES_ALL.test(source),
  }
}

/**
 * True when nothing that a route runs can read the headers of its requests, as long as they have no body: then they need not be copied for
 * it. Its handler has no parameter for the context, and none of its options looks at a header. False wherever that is not certain.
 */
export function ignoresHeaders(
  handler: (...args: never[]) => unknown,
  { authValidator, idempotency, etag, body }: EndpointOptions,
): boolean {
  if (authValidator !== undefined || idempotency !== undefined || etag === true || typeof body === 'string')
    return false
  const text = textOf(handler)
  return text !== null && text.parameters.length <= 1 && !text.reachesAll
}

/**
 * Returns false when it is certain that a function does not read a field of the context that it gets, and hands the context to nobody: then the
 * runtime need not find out what the field says.
 * @param at which of its parameters the context is
 */
export function mayRead(field: 'user' | 'ip', reader: unknown, at: number): boolean {
  const text = textOf(reader)
  if (text === null || text.reachesAll) return true
  const context = text.parameters[at]
  if (context === undefined) return false
  if (FIELDS.test(context)) return new RegExp(`\\b${field}\\b`).test(context)
  if (!NAME.test(context)) return true
  const uses = text.body.matchAll(
    new RegExp(`(?<![\\w$]|[^.]\\.)${context.replaceAll('$', '\\$')}(?![\\w$])(\\.[\\w$]+)?`, 'g'),
  )
  return [...uses].some(([, used]) => used === undefined || used === `.${field}`)
}

/** True when it is certain that a function calls `commit` of the context that it gets as its second parameter. */
export function callsCommit(handler: (...args: never[]) => unknown): boolean {
  const text = textOf(handler)
  const context = text?.parameters[1]
  if (context === undefined) return false
  if (FIELDS.test(context)) return /\bcommit\b/.test(context)
  return (
    NAME.test(context) && new RegExp(`(?<![\\w$.])${context.replaceAll('$', '\\$')}\\.commit\\s*\\(`).test(text!.body)
  )
}

/** The options of a route whose body is validated, or left alone. */
export type RouteOptions = Omit<EndpointOptions, 'body'> & { body?: StandardSchemaV1 }

/** A route as its thread serves it. */
export type ServedRoute = Route & {
  /** Given by the primary. */
  readonly number: number
  /** What its handler makes carries this on. */
  readonly origin: Origin
  readonly template: PathTemplate
  readonly options: RouteOptions
  /** How its handler reads a body while it comes; null when it gets the whole body. */
  readonly bodyKind: BodyKind | null
  /** Null when it has none. */
  hooks: HookChain | null
  /** `<plugin>.<handler>`: what the spans of its requests are called. */
  readonly name: string
  /** Attributes of each of these spans. */
  readonly spanAttributes: SpanAttributes
}

export type ServedEndpoint = Extract<ServedRoute, { kind: 'endpoint' }>
export type ServedStream = Extract<ServedRoute, { kind: 'stream' }>
export type ServedSocket = Extract<ServedRoute, { kind: 'socket' }>

/** The hooks of one route, each list in the order in which it runs. */
export interface HookChain {
  /** Says who calls; null where nothing reads it, or nobody knows. */
  readonly identify: Hook | null
  /** Before hooks and guards. */
  readonly before: readonly Hook[]
  readonly after: readonly Hook[]
  readonly onError: readonly Hook[]
}

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
  bar({ hooksOf, name, path }: Pick<Owner, 'hooksOf' | 'name'> & { readonly path: string }): void {
    const place = shown(path)
    const run = (): never => {
      throw new HeddleError('PLUGIN_UNGUARDED', `${place} did not boot`)
    }
    this.add({ kind: 'before', owner: { name, instance: undefined, hooksOf }, run, throws: undefined, place })
  }

  /** All hooks of a route; null when it has none. Call it when all hooks are registered. */
  chainOf(route: Route): HookChain | null {
    const { owner, options, place = '' } = route
    const guards = (options.guards ?? []).map((run): Hook => ({ kind: 'guard', owner, run, throws: run.throws, place }))
    const all = [...this.#wider(owner), ...guards]
    const of = (...kinds: HookKind[]): Hook[] => all.filter(({ kind }) => kinds.includes(kind))
    const hooks = all.filter(({ kind }) => kind !== 'identify')
    // The nearest.
    const identify = this.#instead(of('identify').at(-1), owner)
    const isAsked = identify !== undefined && (readsUser(route) || hooks.some(({ run }) => mayRead('user', run, 1)))
    if (hooks.length === 0 && !isAsked) return null
    return {
      identify: isAsked ? identify : null,
      before: of('before', 'guard'),
      after: of('after').reverse(),
      onError: of('onError').reverse(),
    }
  }

  /** Returns true when it is certain that neither a route nor its hooks read `ip` of the context. Call it when all hooks are registered. */
  ignoresAddress(route: Route): boolean {
    if (handlerMayRead('ip', route)) return false
    const chain = this.chainOf(route)
    if (chain === null) return true
    const { identify, before, after, onError } = chain
    // It gets the context twice.
    if (identify !== null && mayRead('ip', identify.run, 0)) return false
    return ![identify, ...before, ...after, ...onError].some((hook) => hook !== null && mayRead('ip', hook.run, 1))
  }

  #instead(identify: Hook | undefined, owner: Owner): Hook | undefined {
    const { userInstead } = this
    if (userInstead === null) return identify
    const run = (context: HttpContext): unknown => {
      const user = userInstead()
      return user === undefined ? (identify?.run.call(identify.owner.instance, context, context) ?? null) : user
    }
    return { kind: 'identify', throws: undefined, place: 'the test', owner, ...identify, run }
  }

  /** The contract of a route with what its hooks do; undefined where they add nothing to it. */
  contractOf(route: Route): string | undefined {
    const throws = this.#throwsOf(route)
    const schemes = this.chainOf(route)?.identify?.schemes
    if ((throws ?? schemes) === undefined) return undefined
    const security = schemes && { schemes, isRequired: throws?.[401] !== undefined }
    return contractText({ ...route.options, ...(throws && { throws }) }, security)
  }

  /** What a route throws, with what its hooks throw; undefined for nothing. */
  #throwsOf(route: Route): ThrownAnswers | undefined {
    const all = [...(this.chainOf(route)?.before.map(({ throws }) => throws) ?? []), route.options.throws]
    const known = all.filter((throws) => throws !== undefined)
    return known.length === 0 ? undefined : Object.assign({}, ...known)
  }

  /**
   * What guards know of the caller the runtime does not know: a stored answer would go to whoever sends its key.
   * @throws HTTP_HOOK_INVALID for such a route. Call it when the plugin has booted
   */
  requireCaller(route: Route): void {
    const { method, path } = route
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
function readsUser(route: Route): boolean {
  const { idempotency, idempotencyScope } = route.options
  return handlerMayRead('user', route) || (idempotency !== undefined && idempotencyScope === undefined)
}

/** As `mayRead`, for the functions of a route itself. */
function handlerMayRead(field: 'user' | 'ip', route: Route): boolean {
  if (route.kind === 'socket') return true
  if (route.kind === 'stream') return mayRead(field, route.handler, 2)
  const { idempotencyScope } = route.options
  if (route.isFolder) return false
  if (mayRead(field, route.handler, 1)) return true
  return idempotencyScope !== undefined && mayRead(field, idempotencyScope, 0)
}

function listIn(lists: Map<string, Hook[]>, key: string): Hook[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

const NAMES = {
  identify: 'its identify',
  guard: 'its guard',
  before: 'its before hook',
  after: 'its after hook',
  onError: 'its onError hook',
}

/** `its before hook (domains/shop/domain.ts:12)` */
const nameOfHook = ({ kind, place }: Hook): string => `${NAMES[kind]} (${place})`
export const placeOfHook = (hook: Hook): string => ` in ${nameOfHook(hook)}`
