import type { IdentityScheme } from '../../contracts/http-hooks.ts'
import type { RouteInfo } from '../../contracts/route-info.ts'

/** Source: OpenAPI specification 3.1.0, security scheme object. */
export type SecurityScheme = Readonly<Record<string, unknown>>

const BEARER: SecurityScheme = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'Sent as `Authorization: Bearer <token>`.',
}
const COOKIE: SecurityScheme = { type: 'apiKey', in: 'cookie', name: '__Host-session' }

/** How the clients of a document say who they are. */
export class SecuritySchemes {
  /** By name. */
  readonly all: Record<string, SecurityScheme> = { bearer: BEARER }

  /** What a route asks for: any one of these; an empty one where it serves strangers, too. None: nothing. */
  of({ has_auth, security }: RouteInfo): Record<string, string[]>[] {
    if (has_auth) return [{ bearer: [] }]
    if (security === null) return []
    const ways = security.schemes.map((scheme) => ({ [this.#nameOf(scheme)]: [] }))
    return security.is_required ? ways : [{}, ...ways]
  }

  #nameOf(scheme: IdentityScheme): string {
    const isNamed = typeof scheme === 'string'
    const described = isNamed ? (scheme === 'bearer' ? BEARER : COOKIE) : scheme
    const wanted = isNamed ? scheme : String(scheme.name ?? scheme.scheme ?? scheme.type)
    const name = wanted.replace(/[^\w.-]/g, '_')
    for (let n = 1; ; n++) {
      const free = n === 1 ? name : `${name}_${n}`
      this.all[free] ??= described
      if (JSON.stringify(this.all[free]) === JSON.stringify(described)) return free
    }
  }
}
