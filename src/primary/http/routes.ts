// The routes of the service: by number, by path, by generation.
import FindMyWay, { type HTTPMethod } from 'find-my-way'
import type { RouteMethod } from '../../contracts/http.ts'
import type { RouteInfo } from '../../contracts/registry.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { readContract } from '../../core/schemas/json-schema.ts'
import { methodsOf, pathsOf, routeShapes } from '../../runtime/endpoint/route.ts'
import { METHODS, ROUTES_MAX } from '../../transport/frames/request-frame.ts'
import type { RouteManifest, SharedMount } from '../../transport/messages.ts'

/** Answers that come within this on average, milliseconds, are quick: the time that it takes to wake a sleeping lane counts beside it. */
const QUICK_MS = 0.5
/** A longer time counts as this, milliseconds: one slow answer is soon forgotten. */
const MOST_MS = 4
/** How far one answer moves the average, as a part of the difference. */
const STEP = 1 / 16

/** How fast the answers of one route come, from their requests on: waiting in front of a lane counts, too. */
export class RoutePace {
  /** A route that is not known yet is not quick. */
  #averageMs = MOST_MS

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS
  }

  answered(ms: number): void {
    this.#averageMs += (Math.min(ms, MOST_MS) - this.#averageMs) * STEP
  }
}

/** Who may use a route: see `SystemAccess`. `health`, `login` and `assistants` are parts of `/system`. */
export type RouteZone = 'application' | 'system' | 'health' | 'login' | 'assistants'

/** The zone of a route, by its template: however a request spells the path, it has found this. */
function zoneOf(path: string): RouteZone {
  if (path !== '/system' && !path.startsWith('/system/')) return 'application'
  if (path.startsWith('/system/health/')) return 'health'
  if (path === '/system/mcp') return 'assistants'
  return path === '/system/login' || path.startsWith('/system/login/') ? 'login' : 'system'
}

/** A route as the listener knows it. */
export interface RouteEntry {
  /** Its number in the frames. At most 65,535. */
  readonly number: number
  readonly plugin: string
  readonly method: RouteMethod
  readonly path: string
  readonly zone: RouteZone
  readonly kind: RouteManifest['kind']
  /** Milliseconds until the answer begins, as that of a stream. */
  timeoutMs: number
  /** Its handler reads the body while it comes. */
  readonly isBodyStreamed: boolean
  /** Of a body that is streamed; 0: HTTP_BODY_LIMIT. */
  maxBytes: number
  /** Plugins of the primary answer in the listener's own thread. */
  readonly servedBy: 'primary' | 'lanes'
  /** As its plugin has registered it: of lanes, the newest. */
  manifest: RouteManifest
  /** Of the lanes that have registered it so. */
  generation: number
  /** Nothing in a lane reads the headers of its requests that have no body. */
  ignoresHeaders: boolean
  /** Nothing that its requests run reads the client's address. */
  ignoresAddress: boolean
  /** The circuit of its plugin is open until then, milliseconds since the epoch; 0: the route is served. */
  closedUntilMs: number
  readonly pace: RoutePace
}

/**
 * Routes by method and path: static beats parameter beats wildcard. HEAD finds the GET route. Beside `GET /users/me` no method of
 * `/users/:id` is one of `/users/me`; a wildcard, as of a folder of files, takes what else there is.
 */
export class RouteTable {
  readonly #router = FindMyWay({ maxParamLength: 16_384 })
  readonly #entries = new Map<number, RouteEntry>()
  readonly #byShape = new Map<string, RouteEntry>()
  /** Paths without parameters, with how many routes each has. */
  readonly #plain = new Map<string, number>()
  /** True when there is a WebSocket, or was one. */
  hasSockets = false
  /** Runs when the first WebSocket comes. */
  onFirstSocket: () => void = NOTHING

  /** The first route that has a method and a path of this one, parameter names aside, if there is one. */
  rival(method: string, path: string): RouteEntry | undefined {
    return this.rivals(method, path)[0]
  }

  rivals(method: string, path: string): RouteEntry[] {
    const found = routeShapes(method, path).map((shape) => this.#byShape.get(shape))
    return [...new Set(found)].filter((entry) => entry !== undefined)
  }

  add(entry: RouteEntry): void {
    for (const shape of routeShapes(entry.method, entry.path)) this.#byShape.set(shape, entry)
    this.#entries.set(entry.number, entry)
    for (const path of pathsOf(entry.method, entry.path))
      this.#router.on(routedMethods(entry.method), path, NOTHING, entry)
    if (!isTemplate(entry.path)) this.#plain.set(entry.path, (this.#plain.get(entry.path) ?? 0) + 1)
    if (entry.kind !== 'socket' || this.hasSockets) return
    this.hasSockets = true
    this.onFirstSocket()
  }

  remove(entry: RouteEntry): void {
    for (const shape of routeShapes(entry.method, entry.path)) this.#byShape.delete(shape)
    this.#entries.delete(entry.number)
    for (const path of pathsOf(entry.method, entry.path)) this.#router.off(routedMethods(entry.method), path)
    if (isTemplate(entry.path)) return
    const left = this.#plain.get(entry.path)! - 1
    if (left === 0) this.#plain.delete(entry.path)
    else this.#plain.set(entry.path, left)
  }

  find(method: string, path: string): RouteEntry | null {
    const found = this.#router.find(method as HTTPMethod, path)
    const entry = found === null ? null : (found.store as RouteEntry)
    // What is under `/system` is never an application's, also where nothing of it is served.
    if (entry?.method === 'ALL' && entry.zone === 'application' && zoneOf(path) !== 'application') return null
    if (entry !== null && !this.#isOfPlainPath(entry, path)) return hasEmptyParameter(entry.path, path) ? null : entry
    return method === 'HEAD' ? this.find('GET', path) : null
  }

  /** True where the path has a route of its own, with other methods. */
  #isOfPlainPath(entry: RouteEntry, path: string): boolean {
    return entry.path !== path && this.#plain.has(path) && entry.path.includes('/:') && !entry.path.endsWith('*')
  }

  /** The methods that a path has among the routes of these zones, for `Allow`. Empty when there is no such path. */
  allowed(path: string, isServed: (zone: RouteZone) => boolean): string[] {
    return METHODS.filter((method) => {
      const route = this.find(method, path)
      return route !== null && isServed(route.zone)
    })
  }

  numbered(number: number): RouteEntry | undefined {
    return this.#entries.get(number)
  }

  list(): RouteEntry[] {
    return [...this.#entries.values()]
  }
}

/** HEAD finds a fetch handler as it finds a GET route: else the handler would have that of each route below its prefix. */
const routedMethods = (method: RouteMethod): HTTPMethod[] =>
  methodsOf(method).filter((each) => each !== 'HEAD' || method === 'HEAD') as HTTPMethod[]

const isTemplate = (path: string): boolean => path.includes('/:') || path.endsWith('*')

const NOTHING = (): void => {}

/** A parameter has at least one character: `/users/` does not match `/users/:id`. */
function hasEmptyParameter(template: string, path: string): boolean {
  if (!path.endsWith('/') && !path.includes('//')) return false
  const segments = path.split('/')
  return template.split('/').some((segment, index) => segment.startsWith(':') && segments[index] === '')
}

/** A route of the table as plugins see it. */
export function routeInfo(entry: Readonly<RouteEntry>): RouteInfo {
  const { plugin, method, path, kind, servedBy, timeoutMs } = entry
  const { tags, summary, description, contract } = entry.manifest
  const {
    hasAuth,
    security,
    idempotency,
    hasRawBody,
    streamedBody,
    schemas,
    status = 200,
    throws = {},
  } = readContract(contract)
  return {
    plugin,
    method,
    path,
    is_stream: kind === 'stream',
    is_socket: kind === 'socket',
    host: servedBy,
    timeout_ms: kind === 'stream' ? 0 : timeoutMs,
    tags: [...tags],
    summary: summary ?? null,
    description: description ?? null,
    has_auth: hasAuth,
    security: security === undefined ? null : { schemes: [...security.schemes], is_required: security.isRequired },
    idempotency: idempotency ?? null,
    has_raw_body: hasRawBody ?? false,
    streamed_body: streamedBody ?? null,
    schemas,
    status,
    throws,
  }
}

/** A lane, as its routes know it. */
interface RouteLane {
  readonly manifest: { readonly routes: readonly RouteManifest[] } | null
  readonly generation: number
  /** 1 at the numbers of the routes that it hosts. */
  readonly hostsRoute: Uint8Array
  readonly servesRoute: Uint8Array
}

/** Numbers the routes of the primary's plugins and of the lanes', and keeps the table in which the listener finds them. */
export class Routing {
  readonly table = new RouteTable()
  readonly #defaultTimeoutMs: number
  /** Method and path by route number. */
  readonly #names: string[] = []
  /** When the open circuit of a plugin ends, by plugin. */
  readonly #closed = new Map<string, number>()
  /** Folders that every lane serves, whatever its plugins are. */
  readonly mounts: SharedMount[] = []
  #nextNumber = 0

  constructor(defaultTimeoutMs: number) {
    this.#defaultTimeoutMs = defaultTimeoutMs
  }

  /** @throws HTTP_ROUTE_TAKEN naming the plugin that was first */
  addLocal(route: RouteManifest): number {
    this.#requireFree(route)
    return this.#add(route, 'primary')
  }

  /** Sets the contract of a route that is there. @param contract as `contractText` gives it */
  describe(number: number, contract: string | undefined): void {
    const entry = this.table.numbered(number)
    if (entry !== undefined) entry.manifest = { ...entry.manifest, contract }
  }

  /** A folder that a plugin of the primary serves from the lanes. @throws HTTP_ROUTE_TAKEN */
  addMount({ plugin, prefix, directory }: Omit<SharedMount, 'numbers'>, routes: readonly RouteManifest[]): void {
    for (const route of routes) this.#requireFree(route)
    // No lane may take over these routes: its code is never newer.
    const numbers = routes.map((route) => this.#add(route, 'lanes', Number.POSITIVE_INFINITY))
    this.mounts.push({ plugin, prefix, directory, numbers })
  }

  #requireFree(route: RouteManifest): void {
    const rival = this.table.rival(route.method, route.path)
    if (rival !== undefined) throw taken(route, rival)
  }

  /** Removes the routes of a plugin of the primary that has failed since. */
  drop(plugin: string): void {
    for (const entry of this.table.list()) {
      if (entry.servedBy === 'primary' && entry.plugin === plugin) this.table.remove(entry)
    }
    for (const mount of this.mounts.filter((each) => each.plugin === plugin)) {
      this.mounts.splice(this.mounts.indexOf(mount), 1)
      for (const entry of this.table.list()) if (mount.numbers.includes(entry.number)) this.table.remove(entry)
    }
  }

  /**
   * Numbers the routes of a lane. All lanes of a generation have the same routes: the first lane registers them, the others find them.
   * Newer code may have other routes, and may move a route to another plugin.
   * @param refuse told of a plugin that wants another's route; all its routes are refused
   * @returns a number for each route of the manifest, -1 for those refused
   */
  register(lane: RouteLane, refuse: (plugin: string, error: string) => void): number[] {
    const { routes } = lane.manifest!
    const refused = new Set<string>()
    for (const route of routes) {
      const isOthers = (rival: RouteEntry): boolean =>
        rival.plugin !== route.plugin && !this.#isOlder(rival, lane.generation)
      const rival = this.table.rivals(route.method, route.path).find(isOthers)
      if (rival === undefined) continue
      refused.add(route.plugin)
      refuse(route.plugin, taken(route, rival).message)
    }
    lane.hostsRoute.fill(0)
    const numbers = routes.map((route) => (refused.has(route.plugin) ? -1 : this.#numberOf(route, lane.generation)))
    for (const number of numbers) if (number >= 0) lane.hostsRoute[number] = 1
    for (const mount of this.mounts) for (const number of mount.numbers) lane.hostsRoute[number] = 1
    lane.servesRoute.set(lane.hostsRoute)
    return numbers
  }

  /** Removes routes that no lane serves any more. */
  keepHosted(lanes: readonly Pick<RouteLane, 'hostsRoute'>[]): void {
    for (const entry of this.table.list()) {
      if (entry.servedBy === 'lanes' && !lanes.some(({ hostsRoute }) => hostsRoute[entry.number] === 1))
        this.table.remove(entry)
    }
  }

  /** Closes the routes of a plugin until then (milliseconds since the epoch), or (0) opens them again. */
  close(plugin: string, untilMs: number): void {
    if (untilMs === 0) this.#closed.delete(plugin)
    else this.#closed.set(plugin, untilMs)
    for (const entry of this.table.list()) {
      if (entry.plugin === plugin) entry.closedUntilMs = untilMs
    }
  }

  /** Method and path of a route, also of one that was removed. */
  nameOf(number: number): string {
    return this.#names[number] ?? `route ${number}`
  }

  /** True for a route that older code has registered. */
  #isOlder(entry: RouteEntry, generation: number): boolean {
    return entry.servedBy === 'lanes' && generation > entry.generation
  }

  #numberOf(route: RouteManifest, generation: number): number {
    const rivals = this.table.rivals(route.method, route.path)
    const [known] = rivals
    if (known === undefined) return this.#add(route, 'lanes', generation)
    if (
      known.plugin === route.plugin &&
      known.method === route.method &&
      known.path === route.path &&
      known.kind === route.kind &&
      known.isBodyStreamed === route.isBodyStreamed
    ) {
      if (this.#isOlder(known, generation)) this.#refresh(known, route, generation)
      // Lanes of older code may still serve it.
      known.ignoresHeaders &&= route.ignoresHeaders === true
      known.ignoresAddress &&= route.ignoresAddress === true
      return known.number
    }
    for (const rival of rivals) this.table.remove(rival)
    return this.#add(route, 'lanes', generation)
  }

  #refresh(entry: RouteEntry, route: RouteManifest, generation: number): void {
    entry.generation = generation
    entry.timeoutMs = this.#timeoutOf(route)
    entry.maxBytes = route.maxBytes ?? 0
    entry.manifest = route
  }

  #timeoutOf({ timeoutMs }: RouteManifest): number {
    return timeoutMs ?? this.#defaultTimeoutMs
  }

  #add(route: RouteManifest, servedBy: RouteEntry['servedBy'], generation = 0): number {
    if (this.#nextNumber >= ROUTES_MAX)
      throw new HeddleError('HTTP_PATH_INVALID', `There are more than ${ROUTES_MAX} routes`)
    const { plugin, method, path, kind } = route
    const number = this.#nextNumber++
    this.#names[number] = `${method} ${path}`
    this.table.add({
      number,
      plugin,
      method,
      path,
      zone: zoneOf(path),
      kind,
      timeoutMs: this.#timeoutOf(route),
      isBodyStreamed: route.isBodyStreamed,
      maxBytes: route.maxBytes ?? 0,
      servedBy,
      manifest: route,
      generation,
      ignoresHeaders: servedBy === 'lanes' && route.ignoresHeaders === true,
      ignoresAddress: servedBy === 'lanes' && route.ignoresAddress === true,
      closedUntilMs: this.#closed.get(plugin) ?? 0,
      pace: new RoutePace(),
    })
    return number
  }
}

function taken(route: RouteManifest, rival: RouteEntry): HeddleError {
  return new HeddleError('HTTP_ROUTE_TAKEN', `${route.method} ${route.path} is registered already by ${rival.plugin}`)
}
