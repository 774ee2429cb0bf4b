import type { Cors } from './cors.ts'

/** What a browser tells of the page that makes a request. */
export interface PageHeaders {
  readonly host: string
  readonly origin: string
  /** `sec-fetch-site`. */
  readonly fetchSite: string
}

/**
 * True for a request that a page of another origin makes, and that `HTTP_CORS_ORIGINS` does not allow. Clients that are no browsers send
 * neither header. Source: RFC 6454, section 7, and the Fetch Metadata standard of the W3C.
 */
export function isForeignPage({ host, origin, fetchSite }: PageHeaders, cors: Cors): boolean {
  if (origin === '' && fetchSite === '') return false
  if (cors.allows(origin)) return false
  return fetchSite === 'cross-site' || !isSameOrigin(origin, host)
}

/** The scheme is not compared: a proxy may change it. */
function isSameOrigin(origin: string, host: string): boolean {
  return origin === '' || origin === `http://${host}` || origin === `https://${host}`
}
