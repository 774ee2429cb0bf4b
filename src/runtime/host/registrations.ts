// What plugins register, checked and as the primary gets it.

import type { Owner } from '../../contracts/common.ts'
import type { Endpoint, Hook } from '../../contracts/http.ts'
import type { Guard } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { callerPlace } from '../../core/errors/places.ts'
import { contractText } from '../../core/schemas/route-contract.ts'
import type { RouteManifest } from '../../transport/messages.ts'
import { callsCommit } from '../endpoint/route.ts'
import type { Toolbox } from '../kernel/toolbox.ts'

type RegisteredRoute = Pick<Endpoint, 'owner' | 'method' | 'path' | 'options'>

/** A route of a plugin as the table of routes has it. */
export function routeManifest(route: RegisteredRoute, kind: 'endpoint' | 'stream' | 'socket'): RouteManifest {
  const { owner, method, path, options } = route
  const { timeoutMs, tags = [], summary, description, body, maxBytes } = options
  return {
    plugin: owner.name,
    method,
    path,
    isStream: kind === 'stream',
    isSocket: kind === 'socket',
    timeoutMs,
    isBodyStreamed: typeof body === 'string',
    maxBytes,
    tags,
    summary,
    description,
    contract: contractText(options),
  }
}

/** A hook with the place of the call that registers it. @throws HTTP_HOOK_INVALID after the boot */
export function registeredHook(hook: Omit<Hook, 'place'>, isBooted: boolean): Hook {
  const place = callerPlace()
  if (isBooted)
    throw new HeddleError('HTTP_HOOK_INVALID', `${hook.kind}: hooks are registered while the plugin boots, not later`)
  return { ...hook, place }
}

/** A route with the place of the call that registers it, where its guards want it. */
export function placed<Route extends { options: { guards?: readonly Guard[] }; place?: string }>(route: Route): Route {
  return route.options.guards === undefined ? route : { ...route, place: callerPlace() }
}

/** @throws TOOL_MISSING for a route that could not answer without the database */
export function requireDb({ handler, options }: Endpoint, toolbox: Pick<Toolbox, 'get'>): void {
  if (toolbox.get('db') !== undefined || (options.idempotency === undefined && !callsCommit(handler))) return
  throw new HeddleError('TOOL_MISSING', 'Missing tool: db')
}

/** @throws HTTP_HOOK_INVALID for what only a plugin may register */
export function requirePlugin({ hooksOf }: Owner, what: string): void {
  if (hooksOf === undefined) return
  const file = hooksOf === 'domain' ? 'domain.ts' : 'app.ts'
  throw new HeddleError('HTTP_HOOK_INVALID', `${what}: ${file} registers hooks alone, routes belong in plugins`)
}
