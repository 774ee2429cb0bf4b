import { applicationOrigin, sendRequest } from './application.js'
import { letterReplays, outcomeOf } from './dead-letter-actions.js'
import { clock, duration, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfLetter, inPage } from './page.js'
import { fetchJson } from './process.js'
import { curlOf, missingOf, repeatOf, testOf, textOf } from './request-copies.js'
import { chooseEditor, editorAddress } from './request-editor.js'
import { editorLink, endOf, hatching, logsBlock, spanDetail, waterfall } from './request-span.js'
import { logsOf, rowsOf } from './request-tree.js'

/** For how long a question or a word on a button stays. Milliseconds. */
const SURE_MS = 4000
const COPIED_MS = 1500
/** On the button, and on that of the form that asks. */
const CURL = 'Copy as curl'
const SEND = 'Send again'

/** The right side: one request, and what can be done with it. */
export class RequestDetail {
  #view
  /** What is on the button whose text was copied. */
  #copied = ''
  #sending = ''
  #isSure = false
  /** What is done when somebody has written what the history does not keep; null where nobody is asked. */
  #asking = null

  /** @param {{ draw(): void, go(id: string): void, choose(key: string): void, replayed(): Promise<void> }} view in which it stands */
  constructor(view) {
    this.#view = view
  }

  /** Another one is shown. */
  forget() {
    this.#isSure = false
    this.#asking = null
  }

  /** @param {{ chosen: string | null, letters: object[], back: unknown }} shown `chosen`: the key of a row; `letters`: those of the request */
  content(request, shown) {
    const { chosen, letters, back } = shown
    const rows = rowsOf(request)
    const endMs = endOf(request, rows)
    const row =
      rows.find(({ key }) => key === chosen) ??
      rowOfLog(rows, chosen) ??
      rowOfEvent(rows, request.askedFor) ??
      faultyRow(rows) ??
      rows[0]
    return html`
      ${hatching}
      ${back}
      <header class="request-head">
        <h2>
          ${statusBadge(request)} <span>${titleOf(request)}</span>
          ${letters.length > 0 ? html`<span class="tag" data-tone="bad">${plural(letters.length, 'dead letter')}</span>` : nothing}
        </h2>
        <div class="request-buttons">${this.#buttons(request, letters)}</div>
      </header>
      <p class="request-facts">${factsOf(request, rows, endMs).map(([text, value]) => html`<span>${text} <b>${value}</b></span>`)}</p>
      ${this.#asking === null ? nothing : this.#missingForm(this.#asking)}
      ${this.#sending === '' ? nothing : html`<p class="note" role="status">${this.#sending}</p>`}
      ${request.why === null ? nothing : whyBox(request)}
      ${letterLines(request, letters)}
      ${waterfall(rows, endMs, row, (key) => this.#view.choose(key))}
      ${row === undefined ? nothing : spanDetail(row, request, (select) => this.#chooseEditor(select))}
      <section class="span-detail">${logsBlock('Log of the request', logsOf(request))}</section>
    `
  }

  #buttons(request, letters) {
    const copying = (text, copy) =>
      html`<button type="button" @click=${copy}>${this.#copied === text ? 'Copied' : text}</button>`
    const link = () => this.#copy('Copy link', location.href)
    const test = () => this.#copy('Copy as test', testOf(request, request.project?.testing ?? 'heddle/testing'))
    const repeats = () => html`
      ${copying(CURL, () => this.#repeat(CURL, request))} ${copying('Copy as test', test)}
      <button type="button" title=${repeatOf(request).lacks || nothing} @click=${() => this.#send(request)}>${this.#isSure ? `Send ${request.method} again?` : SEND}</button>`
    return html`
      ${copying('Copy link', link)}
      ${request.kind === 'request' && request.method !== '' ? repeats() : nothing}
      ${letters.length > 0 ? html`<button class="primary" type="button" @click=${() => this.#replay(letters)}>Replay ${plural(letters.length, 'dead letter')}</button>` : nothing}`
  }

  /** Asks for what the history does not keep, before anything is sent or copied. */
  #missingForm({ what, missing }) {
    const fields = missing.map(
      ({ name, isBody }, n) =>
        html`<label>${name} ${isBody ? html`<textarea name=${n} required></textarea>` : html`<input name=${n} required autocomplete="off" spellcheck="false">`}</label>`,
    )
    return html`<form class="missing" @submit=${(event) => this.#onMissing(event)}>
      <p>Secrets are not kept, nor what is too long. Write what stood there:</p>
      ${fields}
      <button class="primary" type="submit">${what}</button>
    </form>`
  }

  async #copy(what, text) {
    try {
      await navigator.clipboard.writeText(text)
      this.#copied = what
    } catch {
      // Browsers forbid it on plain HTTP, except on localhost.
      prompt('Copy it by hand', text)
    }
    this.#view.draw()
    setTimeout(() => {
      this.#copied = ''
      this.#view.draw()
    }, COPIED_MS)
  }

  #chooseEditor(select) {
    const address =
      select.value ||
      prompt(
        'Address that opens a place, with {path}, {line} and {column}. The path has no slash in front.',
        editorAddress(),
      )
    if (address) chooseEditor(address)
    else select.value = editorAddress()
    this.#view.draw()
  }

  /** Sends the same once more, and shows what came of it. What may change something is sent at the second click. */
  #send(request) {
    const isUnsafe = request.method !== 'GET' && request.method !== 'HEAD'
    if (!isUnsafe || this.#isSure) {
      this.#isSure = false
      return this.#repeat(SEND, request)
    }
    this.#isSure = true
    this.#view.draw()
    setTimeout(() => {
      this.#isSure = false
      this.#view.draw()
    }, SURE_MS)
  }

  /** Does it, or asks before for what is missing. */
  #repeat(what, request) {
    const { headers, ...repeat } = repeatOf(request)
    // The browser sends its own cookie, and lets no page set one.
    const { cookie: _, ...own } = headers
    const wanted = { ...repeat, headers: what === SEND ? own : headers }
    const missing = missingOf(wanted)
    this.#asking = missing.length > 0 ? { what, wanted, missing } : null
    if (this.#asking === null) void this.#done(what, wanted)
    else this.#view.draw()
  }

  #onMissing(event) {
    event.preventDefault()
    const { what, wanted, missing } = this.#asking
    const written = new FormData(event.target)
    this.#asking = null
    void this.#done(
      what,
      missing.reduce((all, { fill }, n) => fill(all, written.get(String(n))), wanted),
    )
  }

  async #done(what, { method, path, body, type, headers }) {
    if (what === CURL) return this.#copy(CURL, curlOf({ method, path, body, type, headers }, applicationOrigin()))
    this.#sending = 'Sending it …'
    this.#view.draw()
    try {
      const sent = body === undefined ? {} : { body: textOf(body) }
      const answer = await sendRequest(path, {
        method,
        ...sent,
        headers: type === null ? headers : { 'content-type': type, ...headers },
      })
      await answer.body?.cancel()
      this.#sending = ''
      const id = answer.headers.get('x-request-id')
      if (id !== null) return this.#view.go(id)
      this.#sending = `It was answered with ${answer.status}`
    } catch (thrown) {
      this.#sending = `It could not be sent: ${thrown.message}`
    }
    this.#view.draw()
  }

  async #replay(letters) {
    for (const letter of letters) {
      const path = `/system/dead-letters/${encodeURIComponent(letter.id)}/replay`
      if ((await fetchJson(path, { method: 'POST' })) !== null) letterReplays.begin(letter)
    }
    await this.#view.replayed()
  }
}

/** In a narrow window the list and the one that is chosen take turns. */
export const backLink = (address) => html`<a class="back" href=${address}>← All requests</a>`

/** The name of what failed, in front, stands out. */
function whyBox({ why, project }) {
  const [, name, rest] = /^(\S+\.\S+)( (?:failed|gave up)[\s\S]*)$/.exec(why.sentence) ?? []
  const link = why.place === null || project === null ? nothing : editorLink(why.place)
  return html`<p class="why" role="status">${name === undefined ? why.sentence : html`<b>${name}</b>${rest}`} ${link}</p>`
}

export function statusBadge({ kind, status, state, failed }) {
  const badge = (tone, text) => html`<span class="status" data-tone=${tone}>${text}</span>`
  if (state === 'open') return badge('warn', 'open')
  if (state === 'unfinished') return badge('bad', 'died')
  if (kind === 'job') return badge(failed ? 'bad' : nothing, 'job')
  if (status === null) return badge(nothing, '–')
  if (status === 0) return badge('warn', 'gone')
  return badge(status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'ok', status)
}

export const titleOf = ({ kind, method, path, route, plugin, id }) =>
  kind === 'job' ? `${plugin}/${route}` : method === '' ? id : `${method} ${path}`

/** @returns {string[][]} what it is, and its value */
function factsOf(request, rows, endMs) {
  const { kind, plugin, user, duration_ms: ms, lane, replica, id, at_ms: atMs, parts, release, began_with } = request
  const sql = rows.filter(({ detail }) => detail.call?.statement !== undefined)
  const sqlMs = sql.reduce((sum, { ms: each }) => sum + (each ?? 0), 0)
  const events = rows.filter(({ detail }) => detail.call?.eventId !== undefined)
  const logs = logsOf(request)
  return [
    ['', plugin],
    [kind === 'job' ? 'ran' : 'answered in', ms === null ? '' : duration(ms)],
    ['all that it caused', endMs > (ms ?? 0) * 1.01 ? duration(endMs) : ''],
    [kind === 'job' ? 'caused by' : '', kind === 'job' ? (user ?? 'the scheduler') : ''],
    ['lane', lane === null || lane < 0 ? '' : String(lane)],
    ['', sql.length === 0 ? '' : `${sql.length} SQL · ${duration(sqlMs)}`],
    ['', events.length === 0 ? '' : plural(events.length, 'event')],
    ['', logs.length === 0 ? '' : plural(logs.length, 'log')],
    ['user', kind === 'job' ? '' : (user ?? '')],
    ['on', replica],
    ['release', release ?? ''],
    ['began with release', began_with ?? ''],
    ['at', clock(atMs)],
    ['', id],
    ['trace', parts.find(({ traceId }) => traceId !== undefined)?.traceId ?? ''],
  ].filter(([, value]) => value !== '')
}

const faultyRow = (rows) =>
  rows.findLast(
    ({ isFailed, detail }) =>
      isFailed && detail.call === undefined && (detail.work !== undefined || detail.death !== undefined),
  )

/** Who comes with the id of an event sees what became of it. */
function rowOfEvent(rows, id) {
  if (id === undefined || !id.startsWith('evt_')) return undefined
  const ofEvent = rows.filter(
    ({ detail }) =>
      (detail.call?.eventId ??
        detail.delivery?.eventId ??
        (detail.call === undefined ? detail.work?.eventId : undefined)) === id,
  )
  return ofEvent.findLast(({ isFailed }) => isFailed) ?? ofEvent[0]
}

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
function letterLines(request, letters) {
  const replayed = lettersOf(request, letterReplays.all())
  if (letters.length + replayed.length === 0) return nothing
  return html`
    <ul class="letter-lines" aria-label="Dead letters of the request">
      ${letters.map((letter) => html`<li>${inPage(addressOfLetter(letter.id), 'Dead letter')} ${aboutOf(letter)}</li>`)}
      ${replayed.map((letter) => html`<li data-outcome=${letter.replay.outcome}>${outcomeOf(letter.replay)} ${aboutOf(letter)} ${reasonOf(letter.replay)}</li>`)}
    </ul>`
}

const aboutOf = ({ event, subscriber }) => html`<b>${event}</b> <span class="muted">→ ${subscriber}</span>`

const reasonOf = ({ error, outcome }) => (outcome === 'failed' ? html`<code>${error ?? ''}</code>` : nothing)

/**
 * The row in which something was logged, by the time and the begin of the line.
 * @param {string | null} chosen `log@<milliseconds since the epoch>@<text>`
 */
function rowOfLog(rows, chosen) {
  const [, at, text] = /^log@(\d+)@(.*)$/s.exec(chosen ?? '') ?? []
  if (at === undefined) return undefined
  const distanceOf = ({ detail }) => Math.abs(detail.work.atMs + detail.call.fromMs - Number(at))
  return rows
    .filter(({ detail }) => detail.call?.tool === 'logger' && detail.call.message?.startsWith(text))
    .sort((a, b) => distanceOf(a) - distanceOf(b))[0]
}
