import { bytes, clock, duration, plural } from './format.js'
import { html, nothing, svg } from './lit-html.js'
import { addressOfDeath, addressOfEvent, inPage } from './page.js'
import { EDITORS, editorAddress, editorUrl, isOwnEditor, placeIn } from './request-editor.js'
import { logsOf } from './request-tree.js'

/** Lines of the scale above the waterfall. */
const MARKS = 4
/** Rows that are drawn. */
const ROWS_MAX = 500
/** Percent of the width that every bar has at least. */
const LEAST = 0.5

/** When the last of what it has caused ended, in milliseconds since it has begun. */
export const endOf = (request, rows) =>
  Math.max(request.duration_ms ?? 0, ...rows.map(({ atMs, ms }) => atMs + (ms ?? 0)), 0.001)

/** What a request did over time: a row for each handler, attempt, delivery and call. */
export function waterfall(rows, endMs, chosen, onChoose) {
  return html`
    <div class="waterfall" role="table" aria-label="What it did, over time" aria-rowcount=${rows.length + 1}>
      <div class="fall-row fall-scale" role="row">
        <span role="columnheader">span</span>
        <span class="fall-thread" role="columnheader">thread</span>
        <span class="fall-marks" role="columnheader">${Array.from({ length: MARKS }, (_, n) => html`<span>${n === 0 ? '0' : duration((endMs * n) / MARKS)}</span>`)}</span>
        <span class="number" role="columnheader">${duration(endMs)}</span>
      </div>
      ${rows.slice(0, ROWS_MAX).map((row) => fallRow(row, endMs, row === chosen, onChoose))}
      ${rows.length > ROWS_MAX ? html`<p class="note">${plural(rows.length - ROWS_MAX, 'more row')}</p>` : nothing}
    </div>`
}

function fallRow(row, endMs, isChosen, onChoose) {
  const { key, depth, name, note, thread, atMs, ms, isFailed } = row
  return html`
    <div
      class="fall-row ${isFailed ? 'is-failed' : ''}" data-key=${key}
      role="row" tabindex="0" aria-selected=${String(isChosen)}
      @click=${() => onChoose(key)} @keydown=${(event) => onRowKey(event, key, onChoose)}>
      <span class="fall-name" role="cell" title=${note === '' ? nothing : note}><svg width=${depth * 14} height="1" aria-hidden="true"></svg><b>${name}</b> <i>${note}</i></span>
      <span class="fall-thread" role="cell" data-thread=${laneOf(thread) ?? 'primary'} data-tone=${LANE_TONES[laneOf(thread)] ?? nothing}>${thread}</span>
      <svg class="fall-bar" role="cell" height="14" aria-label=${`from ${duration(atMs)}`}>${barsOf(row, endMs)}</svg>
      <span class="number" role="cell">${duration(ms)}</span>
    </div>`
}

const BAR_TONES = { request: 'accent', work: 'info', db: 'violet', state: 'violet', event_bus: 'ok', before: 'warn' }

/** The waits are hatched: of a delivery what lies between the attempts, of an attempt what came before it. */
function barsOf({ kind, atMs, ms, waits, isFailed }, endMs) {
  const own = bar(kind, isFailed ? 'bad' : BAR_TONES[kind], atMs, ms, endMs)
  const wait = kind === 'delivery' ? 'wait' : 'before'
  const between = waits.map((each) => bar(wait, BAR_TONES[wait], each.atMs, each.ms, endMs))
  return kind === 'delivery' ? [own, between] : [between, own]
}

function bar(kind, tone, atMs, ms, endMs) {
  const width = Math.min(100, Math.max(((ms ?? 0) / endMs) * 100, LEAST))
  const x = Math.min((atMs / endMs) * 100, 100 - width)
  const isThin = kind === 'before'
  const fill = kind === 'wait' ? 'url(#request-wait)' : nothing
  return svg`<rect class=${`bar bar-${kind}`} data-tone=${tone ?? nothing} fill=${fill} x=${`${x}%`} width=${`${width}%`} y=${isThin ? 6.5 : 2} height=${isThin ? 1 : 10} rx=${isThin ? 0 : 2}></rect>`
}

/** What hatches a wait; once in the section, since patterns are found by their ids. */
export const hatching = html`
  <svg class="unseen" aria-hidden="true"><defs>
    <pattern id="request-wait" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatch-ground" width="6" height="6"></rect><rect class="hatch-line" width="2" height="6"></rect>
    </pattern>
  </defs></svg>`

/** Lanes get colours by their number. */
const LANE_TONES = ['info', 'violet', 'ok', 'warn']

/** @returns undefined for the primary */
function laneOf(thread) {
  const [, lane] = /lane (\d+)$/.exec(thread) ?? []
  return lane === undefined ? undefined : Number(lane) % LANE_TONES.length
}

function onRowKey(event, key, onChoose) {
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault()
    onChoose(key)
    return
  }
  const next = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key]
  if (next === undefined) return
  event.preventDefault()
  event.currentTarget[next]?.focus()
}

/** What stands below the waterfall: the row that is chosen, with its source, SQL, payload and log. */
export function spanDetail(row, request, onEditor) {
  const { work, call, delivery, death } = row.detail
  const error = call === undefined || call.error !== undefined ? work?.error : undefined
  const code = [
    call?.statement === undefined ? nothing : block('SQL', html`<pre class="wrap">${call.statement}</pre>`),
    call?.error === undefined ? nothing : html`<p class="why">${call.error}</p>`,
    error === undefined ? nothing : faultOf(request, error.stack, `${error.type}: ${error.message}`, onEditor),
    death === undefined
      ? nothing
      : faultOf(request, [death.line ?? '', ...death.stack].join('\n'), death.message, onEditor),
    death === undefined ? nothing : html`<p>${deathLink(death)}</p>`,
    delivery === undefined ? nothing : html`${stepsOf(delivery)}<p>${eventLink(delivery.eventId)}</p>`,
    call?.eventId === undefined
      ? nothing
      : block('Event', html`<p><code>${call.event}</code> ${eventLink(call.eventId)}</p>`),
  ].filter((part) => part !== nothing)
  const data = [
    payloadsOf(row.detail.request?.parts.find(({ type, kind }) => type === 'work' && kind === 'request')),
    call === undefined ? payloadsOf(work, work?.event ?? '') : payloadsOf(call),
    payloadsOf(delivery, delivery?.event ?? ''),
    call?.fields === undefined
      ? nothing
      : block('Fields', html`<pre class="wrap">${JSON.stringify(call.fields, null, 2)}</pre>`),
    work === undefined || call !== undefined ? nothing : logsBlock('Log of this span', logsOf(request, work), false),
  ].filter((part) => part !== nothing)
  if (code.length + data.length === 0) return nothing
  return html`
    <section class="span-detail" aria-label="The chosen span">
      <h3>${titleOf(row)}</h3>
      <div class="span-columns">
        ${code.length === 0 ? nothing : html`<div>${code}</div>`}
        ${data.length === 0 ? nothing : html`<div>${data}</div>`}
      </div>
    </section>`
}

function titleOf({ name, note, thread, ms, detail }) {
  const of = detail.work !== undefined && detail.call === undefined ? detail.work.attempt : undefined
  const attempt = of === undefined ? (detail.delivery === undefined ? '' : note) : `attempt ${of}`
  return [name, attempt, thread, ms === null ? '' : duration(ms)].filter((part) => part !== '').join(' · ')
}

const block = (title, content) => html`<div class="block"><h4>${title}</h4>${content}</div>`

/** The lines around the fault where this is the one that `why` names, and the stack. */
function faultOf(request, stack, message, onEditor) {
  const { why, project } = request
  const isNamed =
    why !== null && why.place !== null && why.source.length > 0 && stack.includes(`${why.place.file}:${why.place.line}`)
  return html`
    <div class="block">
      ${isNamed ? html`<h4>${why.place.file}:${why.place.line} ${editorLink(why.place)} ${editorChoice(onEditor)}</h4>${sourceLines(why)}` : html`<h4>${message}</h4>`}
      <details ?open=${!isNamed}><summary>Stack</summary><pre class="wrap">${stack.split('\n').map((line) => stackLine(line, project))}</pre></details>
    </div>`
}

function sourceLines({ source, place }) {
  return html`<pre class="source">${source.map(
    ({ line, text, isFault }) =>
      html`<span class=${isFault ? 'is-fault' : ''}>${isFault ? '>' : ' '} ${String(line).padStart(4)} | ${text}\n${isFault ? `       | ${' '.repeat(Math.max(0, place.column - 1))}^\n` : ''}</span>`,
  )}</pre>`
}

/** In development, places of the project are links. */
function stackLine(line, project) {
  const place = project === null || project === undefined ? null : placeIn(line, project.root)
  if (place === null) return html`${line}\n`
  const [before, after] = [
    line.slice(0, line.indexOf(place.text)),
    line.slice(line.indexOf(place.text) + place.text.length),
  ]
  return html`${before}<a href=${editorUrl(place)}>${place.text}</a>${after}\n`
}

export const editorLink = (place) => html`<a class="editor" href=${editorUrl(place)}>Open in editor</a>`

/** Which editor that is. The browser keeps it. */
function editorChoice(onEditor) {
  const address = editorAddress()
  return html`
    <select class="quiet" aria-label="Editor" @change=${(event) => onEditor(event.target)}>
      ${EDITORS.map((each) => html`<option value=${each.address} ?selected=${each.address === address}>${each.name}</option>`)}
      ${isOwnEditor(address) ? html`<option value=${address} selected>${address}</option>` : nothing}
      <option value="">Another …</option>
    </select>`
}

function stepsOf({ group, steps, isGivenUp }) {
  return block(
    `Subscriber ${group}${isGivenUp ? ', given up: it is a dead letter' : ''}`,
    html`<ul>${steps.map(({ name, atMs, delayMs, attempt }) => html`<li><span class="muted">${clock(atMs)}</span> ${name.replaceAll('_', ' ')}${attempt === undefined ? '' : ` ${attempt}`}${delayMs === undefined ? '' : ` after ${duration(delayMs)}`}</li>`)}</ul>`,
  )
}

const LOG_TONES = { error: 'bad', warning: 'warn' }

/** @param {boolean} isOfAll says which plugin has logged it */
export function logsBlock(title, logs, isOfAll = true) {
  if (logs.length === 0) return nothing
  return block(
    title,
    html`<ul class="logs">${logs.map(
      ({ level, message, fields, from, atMs }) => html`
        <li data-tone=${LOG_TONES[level] ?? nothing}><span class="muted">${clock(atMs)}</span> <b>${level.toUpperCase()}</b> ${message} <span class="muted">${isOfAll ? from : ''}${fields === undefined ? '' : ` ${fieldsOf(fields)}`}</span></li>`,
    )}</ul>`,
  )
}

const fieldsOf = (fields) =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')

/** Fields of a part or a call that hold what went in or came out, with their titles. There are some in development only. */
const FIELDS = {
  params: 'Path parameters',
  query: 'Query',
  body: 'Body',
  payload: 'Payload',
  values: 'Values',
  answer: 'Answer',
}
/** Characters of a payload that is shown open. */
const OPEN_MAX = 400

/** @param {object | undefined} holder a part or a call @param {string} [of] what it belongs to */
function payloadsOf(holder, of = '') {
  const found = Object.entries(FIELDS).filter(([name]) => holder?.[name] !== undefined)
  if (found.length === 0) return nothing
  return found.map(([name, title]) => payload(of === '' ? title : `${title} of ${of}`, holder[name]))
}

function payload(title, { text, type, bytes: wholeBytes }) {
  const shown = readable(text)
  if (shown === '{}') return nothing
  const note = [type, wholeBytes === undefined ? null : `${text === '' ? '' : 'the begin of '}${bytes(wholeBytes)}`]
  return html`
    <details class="payload" ?open=${shown.length <= OPEN_MAX}>
      <summary>${title} <span class="muted">${note.filter((each) => each).join(' · ')}</span></summary>
      ${shown === '' ? html`<p class="note">Not kept: it is no text, or too long.</p>` : html`<pre class="wrap">${shown}</pre>`}
    </details>`
}

/** JSON with line breaks where it is long. */
function readable(text) {
  try {
    const value = JSON.parse(text)
    return text.length <= LINE_MAX ? text : JSON.stringify(value, null, 2)
  } catch {
    return text
  }
}

/** Characters of JSON in one line. */
const LINE_MAX = 60

/** An event in the list of events. */
const eventLink = (id) => inPage(addressOfEvent(id), id)

/** The black box of the lane that died. */
const deathLink = ({ atMs, lane }) =>
  inPage(
    addressOfDeath(new Date(atMs).toISOString()),
    `Black box of lane ${lane}: its last steps, and what else was in flight`,
  )
