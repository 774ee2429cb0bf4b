import { ago, clock, dayBefore } from './format.js'
import { html } from './lit-html.js'
import { logIn } from './process.js'

export const REQUESTS = '/system/dashboard/requests'

/** The address of the requests that a search finds, such as `plugin:shop.PlaceOrder`. */
export const addressOfSearch = (query) => `${REQUESTS}?q=${encodeURIComponent(query)}`

/** The address of an event in the list of events. */
export const addressOfEvent = (id) => `/system/dashboard?event=${encodeURIComponent(id)}#events`

/** The address of a dead letter. */
export const addressOfLetter = (id) => `/system/dashboard?letter=${encodeURIComponent(id)}#letters`

/** The address of a job with its runs. @param job `<plugin>/<name>` */
export const addressOfJob = (job) => `/system/dashboard?job=${encodeURIComponent(job)}#jobs`

/** The address of the black box of a lane that died. @param at when, as the box has it */
export const addressOfDeath = (at) => `/system/dashboard?death=${encodeURIComponent(at)}#lanes`

/** What the address of this page names, if it names one. */
export const named = (what) => new URLSearchParams(location.search).get(what)

/** A link to an address of this page, which is followed without loading the page again. */
export const inPage = (address, text) => html`<a class="in-page" href=${address}>${text}</a>`

/** The address of a request, a job's run, or what an event belongs to, by its id. @param {string | null} span the row that is chosen there */
export const addressOfRequest = (id, span = null) =>
  `${REQUESTS}/${encodeURIComponent(id)}${span === null ? '' : `?span=${encodeURIComponent(span)}`}`

/** A link to the request that an id belongs to. */
export const linkToRequest = (id, text = id) => inPage(addressOfRequest(id), text)

/** A stream that fails does not say why: another request does. */
export async function logInIfAsked() {
  try {
    const { status } = await fetch('/system/dashboard', { method: 'HEAD' })
    if (status === 401) logIn()
  } catch {
    // The process does not answer: the page tries again.
  }
}

const TICK_MS = 1000

/** A time and how long ago that is, which stays true while it is shown. */
export const whenAndAgo = (timestamp, className = '') => html`
  <time class=${className} datetime=${timestamp} title=${timestamp} data-ago .textContent=${textOf(timestamp)}></time>`

const textOf = (timestamp) => `${dayBefore(timestamp)}${clock(timestamp)} · ${ago(timestamp)}`

setInterval(() => {
  if (document.hidden) return
  /** @type {NodeListOf<HTMLTimeElement>} */
  const times = document.querySelectorAll('time[data-ago]')
  for (const element of times) element.textContent = textOf(element.dateTime)
}, TICK_MS)
