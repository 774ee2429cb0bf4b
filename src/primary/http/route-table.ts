import FindMyWay, { type HTTPMethod } from 'find-my-way'
import type { Method } from '../../contracts/http.ts'
import { METHODS, routeShape } from '../../runtime/endpoint/route.ts'
import type { RoutePace } from './route-pace.ts'

/** Who may use a route: see `SystemAccess`. `health`, `login` and `assistants` are parts of `/system`. */
export type RouteZone = 'application' | 'system' | 'health' | 'login' | 'assistants'

/** The zone of a route, by its template: however a request spells the path, it has found this. */
export function zoneOf(path: string): RouteZone {
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
  readonly method: Method
  readonly path: string
  readonly zone: RouteZone
  readonly isStream: boolean
  /** It speaks WebSocket. */
  readonly isSocket: boolean
  timeoutMs: number
  /** Its handler reads the body while it comes. */
  readonly isBodyStreamed: boolean
  /** Of a body that is streamed; 0: HTTP_BODY_LIMIT. */
  maxBytes: number
  /** Plugins of the primary answer in the listener's own thread. */
  readonly servedBy: 'primary' | 'lanes'
  tags: readonly string[]
  summary: string | undefined
  description: string | undefined
  /** As in its `RouteManifest`. */
  contract: string | undefined
  /** A handler has read `context.ip`: requests of the route bring the client's address along. */
  wantsAddress: boolean
  /** Nothing in a lane reads the headers of its requests that have no body. */
  ignoresHeaders: boolean
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
  #hasSockets = false
  /** Runs when the first WebSocket comes. */
  onFirstSocket: () => void = NOTHING

  /** The route with the same method and the same path, parameter names aside, if there is one. */
  rival(method: Method, path: string): RouteEntry | undefined {
    return this.#byShape.get(routeShape(method, path))
  }

  add(entry: RouteEntry): void {
    this.#byShape.set(routeShape(entry.method, entry.path), entry)
    this.#entries.set(entry.number, entry)
    this.#router.on(entry.method as HTTPMethod, entry.path, NOTHING, entry)
    if (!isTemplate(entry.path)) this.#plain.set(entry.path, (this.#plain.get(entry.path) ?? 0) + 1)
    if (!entry.isSocket || this.#hasSockets) return
    this.#hasSockets = true
    this.onFirstSocket()
  }

  remove(entry: RouteEntry): void {
    this.#byShape.delete(routeShape(entry.method, entry.path))
    this.#entries.delete(entry.number)
    this.#router.off(entry.method as HTTPMethod, entry.path)
    if (isTemplate(entry.path)) return
    const left = this.#plain.get(entry.path)! - 1
    if (left === 0) this.#plain.delete(entry.path)
    else this.#plain.set(entry.path, left)
  }

  find(method: string, path: string): RouteEntry | null {
    const found = this.#router.find(method as HTTPMethod, path)
    const entry = found === null ? null : (found.store as RouteEntry)
    if (entry !== null && !this.#isOfPlainPath(entry, path)) return hasEmptyParameter(entry.path, path) ? null : entry
    return method === 'HEAD' ? this.find('GET', path) : null
  }

  /** True where the path has a route of its own, with other methods. */
  #isOfPlainPath(entry: RouteEntry, path: string): boolean {
    return entry.path !== path && this.#plain.has(path) && entry.path.includes('/:') && !entry.path.endsWith('*')
  }

  /** True when there is a WebSocket, or was one. */
  get hasSockets(): boolean {
    return this.#hasSockets
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

const isTemplate = (path: string): boolean => path.includes('/:') || path.endsWith('*')

const NOTHING = (): void => {}

/** A parameter has at least one character: `/users/` does not match `/users/:id`. */
function hasEmptyParameter(template: string, path: string): boolean {
  if (!path.endsWith('/') && !path.includes('//')) return false
  const segments = path.split('/')
  return template.split('/').some((segment, index) => segment.startsWith(':') && segments[index] === '')
}
