import { el } from '/system/docs/dom.js'

const REQUESTS = '/system/dashboard/requests'
/** Of the routes under `/system` the history keeps only what failed, and this one. */
const PUBLISH = '/system/events/publish'

/** Makes the links from what was sent to what it caused, on the dashboard. */
export class CausedLinks {
  #hasDashboard

  constructor({ paths }) {
    this.#hasDashboard = paths[`${REQUESTS}/{id}`] !== undefined
  }

  /** For a response; null where nothing is kept of it. */
  ofResponse({ url, status, headers }) {
    const id = headers.get('x-request-id')
    const { pathname } = new URL(url)
    const isKept = !pathname.startsWith('/system/') || pathname === PUBLISH || status >= 500
    return id !== null && isKept ? this.#link(`${REQUESTS}/${encodeURIComponent(id)}`) : null
  }

  /** For a WebSocket, whose handshake a browser does not show: what was lately asked of its route. */
  ofRoute(route) {
    return this.#link(`${REQUESTS}?q=${encodeURIComponent(`route:${route} since:10m`)}`)
  }

  #link(href) {
    return this.#hasDashboard ? el('a.caused', { href }, 'See what it caused') : null
  }
}
