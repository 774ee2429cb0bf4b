import { el, facts } from '/system/dashboard/dom.js'
import { whenAndAgo } from './format.js'
import { linkToRequest, logIn } from './page.js'

/** Buttons that replay, edit and delete a dead letter, and show the outcome. @param more further buttons */
export function letterButtons(page, letter, ...more) {
  const { id, event, subscriber } = letter
  const about = `${event} to ${subscriber}`
  const path = `/system/dead-letters/${encodeURIComponent(id)}`
  const act = (button, done, call) => callOnLetters(page, button, { about, path, done, ...call })
  const replay = el('button.primary', { type: 'button', 'aria-label': `Replay ${about}` }, 'Replay')
  const begin = () => {
    letterReplays.begin(letter)
    return 'redelivered'
  }
  replay.addEventListener('click', () => act(replay, begin, { path: `${path}/replay`, method: 'POST' }))
  const deletion = { label: `Delete ${about}`, text: 'Delete', question: 'Delete for good?' }
  const remove = sureButton(deletion, (button) => act(button, () => 'deleted', { method: 'DELETE' }))
  const form = letterForm(letter, (button, payload) =>
    act(button, () => 'edited', { method: 'PUT', body: { payload } }),
  )
  const edit = el('button.quiet', { type: 'button', 'aria-label': `Edit ${about}` }, 'Edit')
  edit.addEventListener('click', () => {
    form.hidden = !form.hidden
    if (!form.hidden) form.querySelector('textarea').focus()
  })
  return el('div', {}, el('div.actions', {}, replay, edit, remove, ...more), form)
}

/**
 * A form for another payload of a dead letter. The old values are not shown anywhere, so it begins with the keys alone.
 * @param save gets the button and the payload; answers whether it was taken
 */
function letterForm({ event, payload_keys }, save) {
  const text = el('textarea', { rows: '6', spellcheck: 'false', 'aria-label': `New payload of ${event}, as JSON` })
  text.value = JSON.stringify(Object.fromEntries(payload_keys.map((key) => [key, null])), null, 2)
  const fault = el('p.note', { role: 'alert' })
  const button = el('button.primary', { type: 'submit' }, 'Save payload')
  const form = el('form.letter-form', {}, text, fault, el('div.actions', {}, button))
  form.hidden = true
  form.addEventListener('submit', async (submitted) => {
    submitted.preventDefault()
    let payload
    try {
      payload = JSON.parse(text.value)
    } catch (error) {
      fault.textContent = `That is no JSON: ${error.message}`
      return
    }
    fault.textContent = ''
    if (await save(button, payload)) form.hidden = true
  })
  return form
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
  button.disabled = true
  const { refusal, data } = await answerOf(path, method, body)
  button.disabled = false
  page.notices.tell('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done(data)}`, true)
  if (refusal === null) setTimeout(() => page.notices.tell('letter', 'info', null), NOTICE_MS)
  await page.loadLetters()
  // The button was removed with its letter.
  if (hadFocus && !button.isConnected) document.getElementById('main').focus()
  return refusal === null
}

/** @returns why it was refused, or null; and what was answered */
async function answerOf(path, method, body) {
  try {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(path, { method, ...(body === undefined ? {} : json) })
    if (response.status === 401) logIn()
    const { error, data } = await response.json()
    return { refusal: response.ok ? null : (error ?? `Refused: ${response.status}`), data }
  } catch {
    // The process did not answer, or not with JSON: nothing was done.
    return { refusal: 'The process did not answer', data: null }
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
    for (const letter of await replayedLetters(query)) {
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

async function replayedLetters(query) {
  try {
    const response = await fetch(`/system/dead-letters?${query}`)
    return response.ok ? await response.json() : []
  } catch {
    // The state of the connection shows it; it is asked again.
    return []
  }
}

export const letterReplays = new LetterReplays()

const OUTCOMES = { running: 'Under way', done: 'Handled', failed: 'Failed again' }
const OUTCOME_STATES = { running: 'warn', done: 'ok', failed: 'bad' }

/** What has become of a replay, in one line. */
export function outcomeOf({ outcome, at }) {
  const state = el('span', { class: `state state-${OUTCOME_STATES[outcome]}` }, el('span.dot'), OUTCOMES[outcome])
  return el('span.outcome', { role: 'status' }, state, ' ', whenAndAgo(at, { class: 'muted' }))
}

/** A dead letter that was replayed, with what has become of it. @param showLetter shows the letter with an id */
export function replayItem({ id, event, event_id, request_id, subscriber, error, replay, timestamp }, showLetter) {
  const { outcome, error: reason, letter } = replay
  const show =
    letter === undefined
      ? null
      : el('button.quiet', { type: 'button', click: () => showLetter(letter) }, 'Show the new letter')
  return el(
    'li.letter',
    { 'data-letter': id, 'data-outcome': outcome, tabindex: '-1' },
    el(
      'div.letter-head',
      {},
      el('strong', {}, event),
      el('span.muted', {}, `→ ${subscriber}`),
      whenAndAgo(timestamp, { class: 'muted when' }),
    ),
    facts([
      ['Replay', outcomeOf(replay)],
      ['Reason', reason === undefined ? null : el('code.wrap', {}, reason)],
      ['Had failed with', el('code.wrap', {}, error)],
      ['Belongs to', linkToRequest(request_id ?? event_id)],
    ]),
    show === null ? null : el('div.actions', {}, show),
  )
}

/** Milliseconds for which the question stays. */
const QUESTION_MS = 4000

/** A button that asks once before it acts. @param run gets the button */
export function sureButton({ label, text, question, kind = 'quiet' }, run) {
  const button = el('button', { class: kind, type: 'button', 'aria-label': label }, text)
  let timer
  const rest = () => {
    clearTimeout(timer)
    button.dataset.sure = 'false'
    button.textContent = text
  }
  button.addEventListener('click', () => {
    if (button.dataset.sure === 'true') {
      rest()
      return run(button)
    }
    button.dataset.sure = 'true'
    button.textContent = question
    timer = setTimeout(rest, QUESTION_MS)
  })
  return button
}
