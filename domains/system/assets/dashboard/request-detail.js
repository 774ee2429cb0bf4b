import { letterReplays, outcomeOf } from './dead-letter-actions.js'
import { clock, duration, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfLetter, inPage } from './page.js'
import { repeatOf, testOf } from './request-copies.js'
import { editorLink, endOf, hatching, logsBlock, spanDetail, waterfall } from './request-span.js'
import { logsOf, rowsOf } from './request-tree.js'

/**
 * The right side: one request.
 * @param {{ chosen: string | null, copied: string, isSure: boolean, sending: string, letters: object[],
 *   asking: { what: string, missing: object[] } | null, back, onChoose, onCopy, onCurl, onEditor, onMissing, onReplay, onSend }} how
 */
export function requestDetail(request, how) {
  const rows = rowsOf(request)
  const endMs = endOf(request, rows)
  const row =
    rows.find(({ key }) => key === how.chosen) ??
    rowOfLog(rows, how.chosen) ??
    rowOfEvent(rows, request.askedFor) ??
    faultyRow(rows) ??
    rows[0]
  return html`
    ${hatching}
    ${how.back}
    <header class="request-head">
      <h2>
        ${statusBadge(request)} <span>${titleOf(request)}</span>
        ${how.letters.length > 0 ? html`<span class="tag" data-tone="bad">${plural(how.letters.length, 'dead letter')}</span>` : nothing}
      </h2>
      <div class="request-buttons">${buttonsOf(request, how)}</div>
    </header>
    <p class="request-facts">${factsOf(request, rows, endMs).map(([text, value]) => html`<span>${text} <b>${value}</b></span>`)}</p>
    ${how.asking === null ? nothing : missingForm(how)}
    ${how.sending === '' ? nothing : html`<p class="note" role="status">${how.sending}</p>`}
    ${request.why === null ? nothing : whyBox(request)}
    ${letterLines(request, how.letters)}
    ${waterfall(rows, endMs, row, how.onChoose)}
    ${row === undefined ? nothing : spanDetail(row, request, how.onEditor)}
    <section class="span-detail">${logsBlock('Log of the request', logsOf(request))}</section>
  `
}

/** On the button, and on that of the form that asks. */
export const CURL = 'Copy as curl'
export const SEND = 'Send again'

/** In a narrow window the list and the one that is chosen take turns. */
export const backLink = (address) => html`<a class="back" href=${address}>← All requests</a>`

function buttonsOf(request, { copied, isSure, letters, onCopy, onCurl, onReplay, onSend }) {
  const copyButton = (text, make) =>
    html`<button type="button" @click=${() => onCopy(text, make())}>${copied === text ? 'Copied' : text}</button>`
  const canRepeat = request.kind === 'request' && request.method !== ''
  const isUnsafe = request.method !== 'GET' && request.method !== 'HEAD'
  return html`
    ${copyButton('Copy link', () => location.href)}
    ${canRepeat ? html`<button type="button" @click=${onCurl}>${copied === CURL ? 'Copied' : CURL}</button>` : nothing}
    ${canRepeat ? copyButton('Copy as test', () => testOf(request, request.project?.testing ?? 'heddle/testing')) : nothing}
    ${
      canRepeat
        ? html`<button type="button" title=${repeatOf(request).lacks || nothing} @click=${() => onSend(isUnsafe)}>${isSure ? `Send ${request.method} again?` : SEND}</button>`
        : nothing
    }
    ${letters.length > 0 ? html`<button class="primary" type="button" @click=${() => onReplay(letters)}>Replay ${plural(letters.length, 'dead letter')}</button>` : nothing}`
}

/** Asks for what the history does not keep, before anything is sent or copied. */
function missingForm({ asking: { what, missing }, onMissing }) {
  const fields = missing.map(
    ({ name, isBody }, n) =>
      html`<label>${name} ${isBody ? html`<textarea name=${n} required></textarea>` : html`<input name=${n} required autocomplete="off" spellcheck="false">`}</label>`,
  )
  return html`<form class="missing" @submit=${onMissing}>
    <p>Secrets are not kept, nor what is too long. Write what stood there:</p>
    ${fields}
    <button class="primary" type="submit">${what}</button>
  </form>`
}

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
  const { kind, plugin, user, duration_ms: ms, lane, replica, id, at_ms: atMs, parts } = request
  const sql = rows.filter(({ detail }) => detail.call?.statement !== undefined)
  const sqlMs = sql.reduce((sum, { ms: each }) => sum + (each ?? 0), 0)
  const events = rows.filter(({ detail }) => detail.call?.eventId !== undefined)
  const logs = logsOf(request)
  return [
    ['', plugin],
    [kind === 'job' ? 'ran' : 'answered in', ms === null ? '' : duration(ms)],
    ['all that it caused', endMs > (ms ?? 0) * 1.01 ? duration(endMs) : ''],
    [kind === 'job' ? 'caused by' : '', kind === 'job' ? 'the scheduler' : ''],
    ['lane', lane === null || lane < 0 ? '' : String(lane)],
    ['', sql.length === 0 ? '' : `${sql.length} SQL · ${duration(sqlMs)}`],
    ['', events.length === 0 ? '' : plural(events.length, 'event')],
    ['', logs.length === 0 ? '' : plural(logs.length, 'log')],
    ['user', user ?? ''],
    ['on', replica],
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
