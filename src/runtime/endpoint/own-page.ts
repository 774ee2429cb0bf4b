import type { HttpContext } from '../../contracts/http-request.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses a request that may be forged: one that changes something, has the cookies of a browser, and was not made by a page of this
 * origin or of one that `HTTP_CORS_ORIGINS` names. `*` names none. Browsers of today send `Origin` with each such request.
 * Source: OWASP, Cross-Site Request Forgery Prevention (Fetch Metadata, with the origin where they are missing).
 * @throws HTTP_ORIGIN_REFUSED
 */
export function requireOwnPage({ method, headers }: Pick<HttpContext, 'method' | 'headers'>): void {
  if (SAFE_METHODS.has(method)) return
  const { origin, host = '', 'sec-fetch-site': site } = headers
  if (origin === undefined) {
    if (site === 'same-origin') return
  } else if (origin === `https://${host}` || origin === `http://${host}` || isListed(origin)) return
  throw new HeddleError('HTTP_ORIGIN_REFUSED')
}

function isListed(origin: string): boolean {
  const listed = (readVariable('HTTP_CORS_ORIGINS') ?? '').split(',')
  return origin !== '*' && listed.some((each) => each.trim() === origin)
}
