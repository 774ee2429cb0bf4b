import { html } from './lit-html.js'
import { whenAndAgo } from './page.js'
import { fetchJson, logIn } from './process.js'

/** Buttons that replay, edit and delete a dead letter, and show the outcome. @param more further buttons */
export function letterButtons(page, letter, more = undefined) {
  const { id, event, subscriber } = letter
  const about = `${event} to ${subscriber}`
  const path = `/system/dead-letters/${encodeURIComponent(id)}`
  const act = (button, done, call) => callOnLetters(page, button, { about, path, done, ...call })
  const begin = () => {
    letterReplays.begin(letter)
    return 'redelivered'
  }
  const replay = ({ currentTarget }) => act(currentTarget, begin, { path: `${path}/replay`, method: 'POST' })
  const edit = ({ currentTarget }) => {
    const form = currentTarget.closest('.letter-actions').querySelector('form')
    form.hidden = !form.hidden
    if (!form.hidden) void beginEdit(form, `${path}/payload`)
  }
  const deletion = { label: `Delete ${about}`, text: 'Delete', question: 'Delete for good?' }
  return html`
    <div class="letter-actions">
      <div class="actions">
        <button class="primary" type="button" aria-label=${`Replay ${about}`} @click=${replay}>Replay</button>
        <button class="quiet" type="button" aria-label=${`Edit ${about}`} @click=${edit}>Edit</button>
        ${sureButton(deletion, (button) => act(button, () => 'deleted', { method: 'DELETE' }))}${more}
      </div>
      ${letterForm(letter, (button, payload) => act(button, () => 'edited', { method: 'PUT', body: { payload } }))}
    </div>`
}

/** Fills a form with the payload. Where that is not shown, with its keys, and why. */
async function beginEdit(form, path) {
  const { payload } = form.elements
  const note = form.querySelector('[role="alert"]')
  const before = payload.value
  const { refusal, data } = await answerOf(path, 'GET', undefined)
  note.textContent = refusal === null ? '' : `The old values are not shown: ${refusal}`
  // Who has begun to write goes on.
  if (refusal === null && payload.value === before) payload.value = JSON.stringify(data.payload, null, 2)
  payload.rows = Math.min(20, Math.max(6, payload.value.split('\n').length + 1))
  payload.focus()
}

/**
 * A form for another payload of a dead letter. It begins with the payload when it is opened; until then, and for who may not see it, with the keys.
 * @param save gets the button and the payload; answers whether it was taken
 */
function letterForm({ event, payload_keys }, save) {
  const keys = JSON.stringify(Object.fromEntries(payload_keys.map((key) => [key, null])), null, 2)
  const submit = async (submitted) => {
    submitted.preventDefault()
    const form = submitted.target
    const fault = form.querySelector('[role="alert"]')
    let payload
    try {
      payload = JSON.parse(form.elements.payload.value)
    } catch (error) {
      fault.textContent = `That is no JSON: ${error.message}`
      return
    }
    fault.textContent = ''
    if (await save(form.querySelector('button'), payload)) form.hidden = true
  }
  return html`
    <form class="letter-form" hidden @submit=${submit}>
      <textarea name="payload" rows="6" spellcheck="false" aria-label=${`New payload of ${event}, as JSON`} .value=${keys}></textarea>
      <p class="note" role="alert"></p>
      <div class="actions"><button class="primary" type="submit">Save payload</button></div>
    </form>`
}

/** Milliseconds for which a notice of success stays. */
const NOTICE_MS = 6000

/**
 * Does something with dead letters, tells the outcome, and reads the letters again.
 * @param call `about`: what it is done to; `path`, `method`, `body`; `done`: what to tell then, from the data of the answer
 * @returns whether it was done
 */
export async function callOnLetters(page, button, { about, path, method, body, done }) {
  const hadFocus = button.matches(':focus')
  const letter = button.closest('.letter')
  button.disabled = true
  const { refusal, data } = await answerOf(path, method, body)
  button.disabled = false
  page.notices.tell('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done(data)}`, true)
  if (refusal === null) setTimeout(() => page.notices.tell('letter', 'info', null), NOTICE_MS)
  await page.loadLetters()
  // The button was removed, perhaps with its letter.
  if (hadFocus && !button.isConnected) (letter?.isConnected ? letter : document.getElementById('main')).focus()
  return refusal === null
}

/** @returns why it was refused, or null; and what was answered: `data` of it, and all */
export async function answerOf(path, method, body) {
  try {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(path, { method, ...(body === undefined ? {} : json) })
    if (response.status === 401) logIn()
    const answer = await response.json()
    const { error, data } = answer
    return { refusal: response.ok ? null : (error ?? `Refused: ${response.status}`), data, body: answer }
  } catch {
    // The process did not answer, or not with JSON: nothing was done.
    return { refusal: 'The process did not answer', data: null, body: null }
  }
}

/** Milliseconds until it is asked again what has become of a replay: longer each time. */
const ASK_FIRST_MS = 150
const ASK_LAST_MS = 2000
const ASKED_MAX = 1000
/** An answer that is older than the replay comes within this time. */
const ANSWERED_MS = 3000

/** What has become of the letters that were replayed from this page. */
class LetterReplays {
  /** By the letter's id: the letter with its replay. */
  #letters = new Map()
  #listeners = []
  #timer
  #waitMs = ASK_FIRST_MS

  /** @param listener told when something has become of one */
  listen(listener) {
    this.#listeners.push(listener)
  }

  /** Notes that a letter was handed over. */
  begin(letter) {
    const replay = { at: new Date().toISOString(), outcome: 'running' }
    this.#letters.set(letter.id, { ...letter, replay })
    this.#waitMs = ASK_FIRST_MS
    this.#askLater()
    this.#tell()
  }

  /** Oldest first. */
  all() {
    return [...this.#letters.values()]
  }

  /** The replay of what a subscriber has failed at. */
  of({ event_id, subscriber }) {
    return this.all().findLast((each) => each.event_id === event_id && each.subscriber === subscriber)
  }

  /** Forgets those of which is known what has become. */
  forgetEnded() {
    for (const { id, replay } of this.all()) if (replay.outcome !== 'running') this.#letters.delete(id)
  }

  /** Forgets those that were not replayed after all: they are still among those that wait. */
  forgetWaiting(waiting) {
    for (const { id } of waiting) {
      const at = this.#letters.get(id)?.replay.at
      if (at !== undefined && Date.now() - Date.parse(at) > ANSWERED_MS) this.#letters.delete(id)
    }
  }

  #askLater() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#ask(), this.#waitMs)
    this.#waitMs = Math.min(ASK_LAST_MS, this.#waitMs * 1.5)
  }

  async #ask() {
    const running = this.all().filter(({ replay }) => replay.outcome === 'running')
    if (running.length === 0) return
    const times = running.map(({ timestamp }) => Date.parse(timestamp))
    const query = new URLSearchParams({
      replayed: 'true',
      limit: String(ASKED_MAX),
      since: new Date(Math.min(...times)).toISOString(),
      until: new Date(Math.max(...times) + 1).toISOString(),
    })
    // Where nothing is answered, the state of the connection shows it; it is asked again.
    for (const letter of (await fetchJson(`/system/dead-letters?${query}`)) ?? []) {
      const known = this.#letters.get(letter.id)
      if (known !== undefined) this.#letters.set(letter.id, { ...known, replay: letter.replay })
    }
    this.#tell()
    this.#askLater()
  }

  #tell() {
    for (const listener of this.#listeners) listener()
  }
}

export const letterReplays = new LetterReplays()

const OUTCOMES = {
  running: ['warn', 'Under way'],
  done: ['ok', 'Handled'],
  failed: ['bad', 'Failed again'],
}

/** What has become of a replay, in one line. */
export function outcomeOf({ outcome, at }) {
  const [tone, text] = OUTCOMES[outcome]
  return html`<span class="outcome" role="status"><span class="state" data-tone=${tone}><span class="dot"></span>${text}</span> ${whenAndAgo(at, 'muted')}</span>`
}

/** Milliseconds for which the question stays. */
const QUESTION_MS = 4000

/** A button that asks once before it acts. @param run gets the button */
export const sureButton = ({ label, text, question }, run, isDisabled = false) => html`
  <button class="quiet" type="button" aria-label=${label} ?disabled=${isDisabled} .textContent=${text}
    @click=${({ currentTarget }) => askOnce(currentTarget, text, question, run)}></button>`

function askOnce(button, text, question, run) {
  const rest = () => {
    button.dataset.sure = 'false'
    button.textContent = text
  }
  if (button.dataset.sure === 'true') {
    rest()
    return run(button)
  }
  button.dataset.sure = 'true'
  button.textContent = question
  setTimeout(rest, QUESTION_MS)
}
