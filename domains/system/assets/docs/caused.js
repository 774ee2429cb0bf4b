import { html, nothing } from './lit-html.js'

const REQUESTS = '/system/dashboard/requests'
const PUBLISH = '/system/events/publish'

/** Makes the links from what was sent to what it caused, on the dashboard. */
export class CausedLinks {
  #hasDashboard

  constructor({ paths }) {
    this.#hasDashboard = paths[`${REQUESTS}/{id}`] !== undefined
  }

  /** For a response; `nothing` where nothing is kept of it. */
  ofResponse({ url, status, headers }) {
    const id = headers.get('x-request-id')
    const { pathname } = new URL(url)
    // Of the routes under `/system` the history keeps only what failed, and one.
    const isKept = !pathname.startsWith('/system/') || pathname === PUBLISH || status >= 500
    return id !== null && isKept ? this.#link(`${REQUESTS}/${encodeURIComponent(id)}`) : nothing
  }

  /** For a WebSocket, whose handshake a browser does not show: what was lately asked of its route. */
  ofRoute(route) {
    return this.#link(`${REQUESTS}?q=${encodeURIComponent(`route:${route} since:10m`)}`)
  }

  #link(href) {
    return this.#hasDashboard ? html`<a class="caused" href=${href}>See what it caused</a>` : nothing
  }
}
