import type { Endpoint } from '../../contracts/http.ts'
import { contractText } from '../../core/schemas/route-contract.ts'
import type { RouteManifest } from '../../transport/messages.ts'

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
