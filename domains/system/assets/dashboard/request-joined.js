import { html, nothing } from '/system/dashboard/lit-html.js'
import { letterReplays } from './letter-replays.js'
import { addressOfDeath, addressOfEvent, addressOfLetter, follow } from './links.js'
import { outcomeOf } from './replay-item.js'

/** What a request has to do with that is shown elsewhere on the page. */

const link = (address, text) =>
  html`<a class="in-page" href=${address} @click=${(event) => follow(event, address)}>${text}</a>`

/** An event in the list of events. */
export const eventLink = (id) => link(addressOfEvent(id), id)

/** The black box of the lane that died. */
export const deathLink = ({ atMs, lane }) =>
  link(
    addressOfDeath(new Date(atMs).toISOString()),
    `Black box of lane ${lane}: its last steps, and what else was in flight`,
  )

/** Ids of the events that a request has caused. */
function eventsOf({ parts }) {
  return new Set(parts.flatMap(({ eventId, calls = [] }) => [eventId, ...calls.map((call) => call.eventId)]))
}

/** Those of the letters that belong to a request: a job has no request id, but its events. */
export function lettersOf(request, letters) {
  const events = eventsOf(request)
  return letters.filter(({ request_id: id, event_id: eventId }) => id === request.id || events.has(eventId))
}

/** The dead letters of a request, and what came of those that were replayed from this page. */
export function letterLines(request, letters) {
  const replayed = lettersOf(request, letterReplays.all())
  if (letters.length + replayed.length === 0) return nothing
  return html`
    <ul class="plain letter-lines" aria-label="Dead letters of the request">
      ${letters.map((letter) => html`<li>${link(addressOfLetter(letter.id), 'Dead letter')} ${aboutOf(letter)}</li>`)}
      ${replayed.map((letter) => html`<li data-outcome=${letter.replay.outcome}>${outcomeOf(letter.replay)} ${aboutOf(letter)} ${reasonOf(letter.replay)}</li>`)}
    </ul>`
}

const aboutOf = ({ event, subscriber }) => html`<b>${event}</b> <span class="muted">→ ${subscriber}</span>`

const reasonOf = ({ error, outcome }) => (outcome === 'failed' ? html`<code>${error ?? ''}</code>` : nothing)

/**
 * The row in which something was logged, by the time and the begin of the line.
 * @param {string | null} chosen `log@<milliseconds since the epoch>@<text>`
 */
export function rowOfLog(rows, chosen) {
  const [, at, text] = /^log@(\d+)@(.*)$/s.exec(chosen ?? '') ?? []
  if (at === undefined) return undefined
  const distanceOf = ({ detail }) => Math.abs(detail.work.atMs + detail.call.fromMs - Number(at))
  return rows
    .filter(({ detail }) => detail.call?.tool === 'logger' && detail.call.message?.startsWith(text))
    .sort((a, b) => distanceOf(a) - distanceOf(b))[0]
}
