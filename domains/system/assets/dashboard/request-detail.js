import { html, nothing } from '/system/dashboard/lit-html.js'
import { clock, duration, plural } from './format.js'
import { repeatOf, testOf } from './request-copies.js'
import { letterLines, rowOfLog } from './request-joined.js'
import { editorLink, logsBlock, spanDetail } from './request-span.js'
import { logsOf, rowsOf } from './request-tree.js'
import { endOf, hatching, waterfall } from './request-waterfall.js'

/**
 * The right side: one request.
 * @param {{ chosen: string | null, copied: string, isSure: boolean, sending: string, letters: object[], onBack, onChoose, onCopy, onEditor, onReplay, onSend }} how
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
    ${backLink(how.onBack)}
    <header class="request-head">
      <h2>
        ${statusBadge(request)} <span>${titleOf(request)}</span>
        ${how.letters.length > 0 ? html`<span class="tag tag-bad">${plural(how.letters.length, 'dead letter')}</span>` : nothing}
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
export const backLink = (onBack) =>
  html`<a class="back" href="/system/dashboard/requests" @click=${onBack}>← All requests</a>`

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
  if (state === 'open') return html`<span class="status status-open">open</span>`
  if (state === 'unfinished') return html`<span class="status status-bad">died</span>`
  if (kind === 'job') return html`<span class="status ${failed ? 'status-bad' : ''}">job</span>`
  const of = status === null ? '–' : status === 0 ? 'gone' : status
  const how = status >= 500 ? 'bad' : status >= 400 || status === 0 ? 'warn' : status === null ? '' : 'ok'
  return html`<span class="status ${how === '' ? '' : `status-${how}`}">${of}</span>`
}

export const titleOf = ({ kind, method, path, route, plugin, id }) =>
  kind === 'job' ? `${plugin}/${route}` : method === '' ? id : `${method} ${path}`

/** @returns {[string, string][]} what it is, and its value */
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
    ['at', clock(new Date(atMs).toISOString())],
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
