import { HeddleError } from '../errors/catalogue.ts'
import { type RouteEntry, RouteTable } from '../http/routes.ts'
import type { Lane } from '../lanes/lane.ts'
import type { RouteManifest } from '../lanes/messages.ts'

/** Routes that a process can have: their numbers must fit into a frame. */
export const ROUTES_MAX = 65_535

/** Numbers the routes of the primary's plugins and of the lanes', and keeps the table that the listener looks at. */
export class Routing {
  readonly table = new RouteTable()
  readonly #defaultTimeoutMs: number
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

  /** Takes away the routes of a plugin of the primary that has failed since. */
  drop(plugin: string): void {
    for (const entry of this.table.list()) {
      if (entry.host === 'primary' && entry.plugin === plugin) this.table.remove(entry)
    }
  }

  /**
   * Numbers for a lane's routes. Every lane brings the same ones: the first makes them, the others find them.
   * @param refuse told of a plugin that wants another's route; all its routes are refused
   * @returns a number for each route of the manifest, -1 for those refused
   */
  adopt(lane: Lane, refuse: (plugin: string, error: string) => void): number[] {
    const { routes } = lane.manifest!
    const refused = new Set<string>()
    for (const route of routes) {
      const rival = this.table.rival(route.method, route.path)
      if (rival === undefined || (rival.host === 'lanes' && rival.plugin === route.plugin)) continue
      refused.add(route.plugin)
      refuse(route.plugin, taken(route, rival).message)
    }
    return routes.map((route) => {
      if (refused.has(route.plugin)) return -1
      return this.table.rival(route.method, route.path)?.number ?? this.#add(route, 'lanes')
    })
  }

  #add(route: RouteManifest, host: RouteEntry['host']): number {
    if (this.#nextNumber >= ROUTES_MAX)
      throw new HeddleError('HTTP_PATH_INVALID', `There are more than ${ROUTES_MAX} routes`)
    const { plugin, method, path, isStream, tags, summary } = route
    const number = this.#nextNumber++
    const timeoutMs = isStream ? 0 : (route.timeoutMs ?? this.#defaultTimeoutMs)
    this.table.add({ number, plugin, method, path, isStream, timeoutMs, host, tags, summary, wantsAddress: false })
    return number
  }
}

function taken(route: RouteManifest, rival: RouteEntry): HeddleError {
  return new HeddleError('HTTP_ROUTE_TAKEN', `${route.method} ${route.path} is registered already by ${rival.plugin}`)
}
