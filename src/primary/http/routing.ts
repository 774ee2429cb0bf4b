import { HeddleError } from '../../core/errors/catalogue.ts'
import { ROUTES_MAX } from '../../transport/frames/request-frame.ts'
import type { RouteManifest, SharedMount } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import { RoutePace } from './route-pace.ts'
import { type RouteEntry, RouteTable, zoneOf } from './route-table.ts'

/** Numbers the routes of the primary's plugins and of the lanes', and keeps the table in which the listener finds them. */
export class Routing {
  readonly table = new RouteTable()
  readonly #defaultTimeoutMs: number
  /** Method and path by route number. */
  readonly #names: string[] = []
  /** The lanes' generation that registered it, by route number. */
  readonly #generations: number[] = []
  /** When the open circuit of a plugin ends, by plugin. */
  readonly #closed = new Map<string, number>()
  readonly #mounts: SharedMount[] = []
  #nextNumber = 0

  constructor(defaultTimeoutMs: number) {
    this.#defaultTimeoutMs = defaultTimeoutMs
  }

  /** @throws HTTP_ROUTE_TAKEN naming the plugin that was first */
  addLocal(route: RouteManifest): number {
    const rival = this.table.rival(route.method, route.path)
    if (rival !== undefined) throw taken(route, rival)
    return this.#add(route, 'primary')
  }

  /** Sets the contract of a route that is there. @param contract as `contractText` gives it */
  describe(number: number, contract: string | undefined): void {
    const entry = this.table.numbered(number)
    if (entry != null) entry.contract = contract
  }

  /** A folder that a plugin of the primary serves from the lanes. @throws HTTP_ROUTE_TAKEN */
  addMount({ plugin, prefix, directory }: Omit<SharedMount, 'numbers'>, routes: readonly RouteManifest[]): void {
    for (const route of routes) {
      const rival = this.table.rival(route.method, route.path)
      if (rival !== undefined) throw taken(route, rival)
    }
    // No lane may take over these routes: its code is never newer.
    const numbers = routes.map((route) => this.#add(route, 'lanes', Number.POSITIVE_INFINITY))
    this.#mounts.push({ plugin, prefix, directory, numbers })
  }

  /** Folders that every lane serves, whatever its plugins are. */
  get mounts(): readonly SharedMount[] {
    return this.#mounts
  }

  /** Removes the routes of a plugin of the primary that has failed since. */
  drop(plugin: string): void {
    for (const entry of this.table.list()) {
      if (entry.servedBy === 'primary' && entry.plugin === plugin) this.table.remove(entry)
    }
    for (const mount of this.#mounts.filter((each) => each.plugin === plugin)) {
      this.#mounts.splice(this.#mounts.indexOf(mount), 1)
      for (const entry of this.table.list()) if (mount.numbers.includes(entry.number)) this.table.remove(entry)
    }
  }

  /**
   * Numbers the routes of a lane. All lanes of a generation have the same routes: the first lane registers them, the others find them.
   * Newer code may have other routes, and may move a route to another plugin.
   * @param refuse told of a plugin that wants another's route; all its routes are refused
   * @returns a number for each route of the manifest, -1 for those refused
   */
  register(lane: Lane, refuse: (plugin: string, error: string) => void): number[] {
    const { routes } = lane.manifest!
    const refused = new Set<string>()
    for (const route of routes) {
      const rival = this.table.rival(route.method, route.path)
      if (rival === undefined || rival.plugin === route.plugin || this.#isOlder(rival, lane.generation)) continue
      refused.add(route.plugin)
      refuse(route.plugin, taken(route, rival).message)
    }
    lane.hostsRoute.fill(0)
    const numbers = routes.map((route) => (refused.has(route.plugin) ? -1 : this.#numberOf(route, lane.generation)))
    for (const number of numbers) if (number >= 0) lane.hostsRoute[number] = 1
    for (const mount of this.#mounts) for (const number of mount.numbers) lane.hostsRoute[number] = 1
    lane.servesRoute.set(lane.hostsRoute)
    return numbers
  }

  /** Removes routes that no lane serves any more. */
  keepHosted(lanes: readonly Lane[]): void {
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

  /** The plugin of a route; null when the route was removed. */
  pluginOf(number: number): string | null {
    return this.table.numbered(number)?.plugin ?? null
  }

  /** Method and path of a route, also of one that was removed. */
  nameOf(number: number): string {
    return this.#names[number] ?? `route ${number}`
  }

  /** True for a route that older code has registered. */
  #isOlder({ servedBy, number }: RouteEntry, generation: number): boolean {
    return servedBy === 'lanes' && generation > this.#generations[number]!
  }

  #numberOf(route: RouteManifest, generation: number): number {
    const known = this.table.rival(route.method, route.path)
    if (known === undefined) return this.#add(route, 'lanes', generation)
    if (
      known.plugin === route.plugin &&
      known.path === route.path &&
      known.isStream === route.isStream &&
      known.isSocket === isSocket(route) &&
      known.isBodyStreamed === isBodyStreamed(route)
    ) {
      if (this.#isOlder(known, generation)) this.#refresh(known, route, generation)
      // Lanes of older code may still serve it.
      known.ignoresHeaders &&= route.ignoresHeaders === true
      return known.number
    }
    this.table.remove(known)
    return this.#add(route, 'lanes', generation)
  }

  #refresh(entry: RouteEntry, route: RouteManifest, generation: number): void {
    this.#generations[entry.number] = generation
    entry.timeoutMs = this.#timeoutOf(route)
    entry.maxBytes = route.maxBytes ?? 0
    entry.tags = route.tags
    entry.summary = route.summary
    entry.description = route.description
    entry.contract = route.contract
  }

  #timeoutOf({ isStream, timeoutMs }: RouteManifest): number {
    return isStream ? 0 : (timeoutMs ?? this.#defaultTimeoutMs)
  }

  #add(route: RouteManifest, servedBy: RouteEntry['servedBy'], generation = 0): number {
    if (this.#nextNumber >= ROUTES_MAX)
      throw new HeddleError('HTTP_PATH_INVALID', `There are more than ${ROUTES_MAX} routes`)
    const { plugin, method, path, isStream, tags, summary, description } = route
    const number = this.#nextNumber++
    this.#names[number] = `${method} ${path}`
    this.#generations[number] = generation
    this.table.add({
      number,
      plugin,
      method,
      path,
      zone: zoneOf(path),
      isStream,
      isSocket: isSocket(route),
      timeoutMs: this.#timeoutOf(route),
      isBodyStreamed: isBodyStreamed(route),
      maxBytes: route.maxBytes ?? 0,
      servedBy,
      tags,
      summary,
      description,
      contract: route.contract,
      // After the handshake there is no request any more that could be asked for the address.
      wantsAddress: isSocket(route),
      ignoresHeaders: servedBy === 'lanes' && route.ignoresHeaders === true,
      closedUntilMs: this.#closed.get(plugin) ?? 0,
      pace: new RoutePace(),
    })
    return number
  }
}

const isSocket = (route: RouteManifest): boolean => route.isSocket === true
const isBodyStreamed = (route: RouteManifest): boolean => route.isBodyStreamed === true

function taken(route: RouteManifest, rival: RouteEntry): HeddleError {
  return new HeddleError('HTTP_ROUTE_TAKEN', `${route.method} ${route.path} is registered already by ${rival.plugin}`)
}
