import { el } from '/system/dashboard/dom.js'

const REQUESTS = '/system/dashboard/requests'

/** The address of a request, a job's run, or what an event belongs to, by its id. */
const addressOfRequest = (id) => `${REQUESTS}/${encodeURIComponent(id)}`

/** The address of the requests that a search finds, such as `plugin:shop.PlaceOrder`. */
export const addressOfSearch = (query) => `${REQUESTS}?q=${encodeURIComponent(query)}`

/** The address of an event in the list of events. */
export const addressOfEvent = (id) => `/system/dashboard?event=${encodeURIComponent(id)}#events`

/** The address of a dead letter. */
export const addressOfLetter = (id) => `/system/dashboard?letter=${encodeURIComponent(id)}#letters`

/** The address of the black box of a lane that died. @param at when, as the box has it */
export const addressOfDeath = (at) => `/system/dashboard?death=${encodeURIComponent(at)}#lanes`

/** What the address of this page names, if it names one. */
export const named = (what) => new URLSearchParams(location.search).get(what)

/** Shows an address of this page without loading the page again. */
function visit(address) {
  history.pushState(null, '', address)
  dispatchEvent(new PopStateEvent('popstate'))
}

/** Follows a link to an address of this page, unless it is to be opened elsewhere. */
export function follow(event, address) {
  event.stopPropagation()
  if (event.metaKey || event.ctrlKey || event.shiftKey) return
  event.preventDefault()
  visit(address)
}

/** A link to an address of this page. @param props further attributes */
export function inPage(address, text, props = {}) {
  return el('a.in-page', { href: address, click: (event) => follow(event, address), ...props }, text)
}

/** A link to the request that an id belongs to. @param span the row of its waterfall that is chosen there */
export const linkToRequest = (id, text = id, span = null) =>
  inPage(addressOfRequest(id) + (span === null ? '' : `?span=${encodeURIComponent(span)}`), text)

/** Goes to the login page when the service wants a token: after a start with one, or when the cookie has run out. */
export function logIn() {
  location.replace(`/system/login?next=${encodeURIComponent(location.pathname)}`)
}

/** A stream that fails does not say why: another request does. */
export async function logInIfAsked() {
  try {
    const { status } = await fetch('/system/dashboard', { method: 'HEAD' })
    if (status === 401) logIn()
  } catch {
    // The process does not answer: the page tries again.
  }
}
