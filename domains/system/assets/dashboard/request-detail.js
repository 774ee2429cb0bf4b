import { html, nothing } from '/system/dashboard/lit-html.js'
import { clock, duration, plural } from './format.js'
import { logsOf, rowsOf } from './request-tree.js'

/** Lines of the scale above the waterfall. */
const MARKS = 4

/** The right side: one request. @param {object} actions `{ copy(text, what), copied }` */
export function requestDetail(request, { chosen, onChoose, onCopy, copied, letters, onReplay }) {
  const rows = rowsOf(request)
  const endMs = Math.max(request.duration_ms ?? 0, ...rows.map(({ atMs, ms }) => atMs + (ms ?? 0)), 0.001)
  const row = rows.find(({ key }) => key === chosen) ?? faultyRow(rows)
  return html`
    <header class="request-head">
      <h2>
        ${statusBadge(request)} ${titleOf(request)}
        ${letters.length > 0 ? html`<span class="tag tag-bad">${plural(letters.length, 'dead letter')}</span>` : nothing}
      </h2>
      <div class="request-buttons">
        ${copyButton('Copy link', location.href, copied, onCopy)}
        ${request.kind === 'request' && request.method !== '' ? copyButton('Copy as curl', curlOf(request), copied, onCopy) : nothing}
        ${letters.length > 0 ? html`<button class="primary" type="button" @click=${() => onReplay(letters)}>Replay ${plural(letters.length, 'dead letter')}</button>` : nothing}
      </div>
    </header>
    <p class="request-facts">${factsOf(request, rows, endMs).map((fact) => html`<span>${fact}</span>`)}</p>
    ${request.why === null ? nothing : html`<p class="why" role="status">${request.why.sentence}</p>`}
    <div class="waterfall" role="table" aria-label="What it did, over time">
      <div class="fall-row fall-scale" role="row">
        <span role="columnheader">span</span>
        <span class="fall-marks" role="columnheader">${marksOf(endMs)}</span>
        <span class="number" role="columnheader">${duration(endMs)}</span>
      </div>
      ${rows.map((each) => fallRow(each, endMs, each === row, onChoose))}
    </div>
    ${row === undefined ? nothing : rowDetail(row, request)}
    ${logList(request)}
  `
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

function factsOf(request, rows, endMs) {
  const { plugin, duration_ms: ms, lane, replica, id, at_ms: atMs } = request
  const sql = rows.filter(({ detail }) => detail.call?.statement !== undefined)
  const sqlMs = sql.reduce((sum, { ms: each }) => sum + (each ?? 0), 0)
  const events = rows.filter(({ detail }) => detail.call?.eventId !== undefined)
  return [
    plugin,
    ms === null ? null : `${request.kind === 'job' ? 'ran' : 'answered in'} ${duration(ms)}`,
    endMs > (ms ?? 0) * 1.01 ? `all that it caused ${duration(endMs)}` : null,
    lane === null || lane < 0 ? null : `lane ${lane}`,
    sql.length === 0 ? null : `${sql.length} SQL · ${duration(sqlMs)}`,
    events.length === 0 ? null : plural(events.length, 'event'),
    replica,
    clock(new Date(atMs).toISOString()),
    id,
  ].filter((fact) => fact !== null && fact !== '')
}

function marksOf(endMs) {
  return Array.from({ length: MARKS }, (_, n) => html`<span>${n === 0 ? '0' : duration((endMs * n) / MARKS)}</span>`)
}

const faultyRow = (rows) =>
  rows.findLast(({ isFailed, detail }) => isFailed && (detail.work !== undefined || detail.death !== undefined))

function fallRow(row, endMs, isChosen, onChoose) {
  const { key, depth, name, note, thread, kind, atMs, ms, isFailed, isWaiting } = row
  const from = (atMs / endMs) * 100
  const width = Math.max(((ms ?? 0) / endMs) * 100, 0.4)
  return html`
    <div
      class="fall-row ${isFailed ? 'is-failed' : ''} ${isChosen ? 'is-chosen' : ''}"
      role="row" tabindex="0"
      @click=${() => onChoose(key)} @keydown=${(event) => event.key === 'Enter' && onChoose(key)}>
      <span class="fall-name" role="cell"><svg width=${depth * 14} height="1" aria-hidden="true"></svg><b>${name}</b> <i>${note === '' ? thread : note}</i></span>
      <svg class="fall-bar" role="cell" height="14" preserveAspectRatio="none" aria-label=${`from ${duration(atMs)}`}>
        <rect class=${`bar bar-${kind} ${isWaiting ? 'bar-waiting' : ''}`} x=${`${Math.min(from, 99.6)}%`} width=${`${width}%`} y="2" height="10" rx="2"></rect>
      </svg>
      <span class="number" role="cell">${duration(ms)}</span>
    </div>`
}

function rowDetail({ name, detail, thread }, request) {
  const { work, call, delivery, death } = detail
  if (work === undefined && delivery === undefined && death === undefined) return nothing
  const error = call === undefined || call.error !== undefined ? work?.error : undefined
  return html`
    <section class="span-detail">
      <h3>${name}${thread === '' ? nothing : html` <span class="muted">${thread}</span>`}</h3>
      ${call?.statement === undefined ? nothing : html`<pre class="wrap">${call.statement}</pre>`}
      ${call?.error === undefined ? nothing : html`<p class="why">${call.error}</p>`}
      ${call?.fields === undefined ? nothing : html`<pre class="wrap">${call.message} ${JSON.stringify(call.fields, null, 2)}</pre>`}
      ${call?.eventId === undefined ? nothing : html`<p class="note">${call.event} · ${call.eventId}</p>`}
      ${error === undefined ? nothing : html`${sourceOf(request, error.stack)}<details><summary>Stack</summary><pre class="wrap">${error.stack}</pre></details>`}
      ${death === undefined ? nothing : html`${sourceOf(request, death.line ?? '')}<pre class="wrap">${death.stack.join('\n')}</pre>`}
      ${delivery === undefined ? nothing : stepsOf(delivery)}
    </section>`
}

/** The lines around the fault, where this is the one that `why` names. */
function sourceOf({ why }, stack) {
  if (why === null || why.place === null || why.source.length === 0) return nothing
  const { file, path, line, column } = why.place
  if (!stack.includes(`${file}:${line}`)) return nothing
  return html`
    <p class="note">${file}:${line} <a href=${`vscode://file${path}:${line}:${column}`}>Open in editor</a></p>
    <pre class="source">${why.source.map(({ line, text, isFault }) => html`<span class=${isFault ? 'is-fault' : ''}>${isFault ? '>' : ' '} ${String(line).padStart(4)} | ${text}\n</span>`)}</pre>`
}

function stepsOf({ group, steps, isGivenUp }) {
  return html`
    <p class="note">Subscriber ${group}${isGivenUp ? ', given up: it is a dead letter' : ''}</p>
    <ul class="plain">${steps.map(({ name, atMs, delayMs, attempt }) => html`<li>${clock(new Date(atMs).toISOString())} ${name.replaceAll('_', ' ')}${attempt === undefined ? '' : ` ${attempt}`}${delayMs === undefined ? '' : ` after ${duration(delayMs)}`}</li>`)}</ul>`
}

function logList(request) {
  const logs = logsOf(request)
  if (logs.length === 0) return nothing
  return html`
    <section class="span-detail">
      <h3>Logs</h3>
      <ul class="plain">${logs.map(
        ({ level, message, fields, from, atMs }) => html`
          <li class=${`is-${level}`}><span class="muted">${clock(new Date(atMs).toISOString())}</span> <b>${level.toUpperCase()}</b> ${message} <span class="muted">${from}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}</span></li>`,
      )}</ul>
    </section>`
}

function copyButton(text, value, copied, onCopy) {
  return html`<button type="button" @click=${() => onCopy(text, value)}>${copied === text ? 'Copied' : text}</button>`
}

/** Neither its query nor its body is kept. */
const curlOf = ({ method, path }) => `curl -X ${method} '${location.origin}${path.replaceAll("'", '%27')}'`
