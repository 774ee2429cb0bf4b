import { html, nothing } from '/system/dashboard/lit-html.js'
import { clock, duration } from './format.js'
import { EDITORS, editorAddress, editorUrl, isOwnEditor, placeIn } from './request-editor.js'
import { deathLink, eventLink } from './request-joined.js'
import { payloadsOf } from './request-payloads.js'
import { logsOf } from './request-tree.js'

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
    html`<ul class="plain">${steps.map(({ name, atMs, delayMs, attempt }) => html`<li><span class="muted">${clock(new Date(atMs).toISOString())}</span> ${name.replaceAll('_', ' ')}${attempt === undefined ? '' : ` ${attempt}`}${delayMs === undefined ? '' : ` after ${duration(delayMs)}`}</li>`)}</ul>`,
  )
}

/** @param {boolean} isOfAll says which plugin has logged it */
export function logsBlock(title, logs, isOfAll = true) {
  if (logs.length === 0) return nothing
  return block(
    title,
    html`<ul class="plain logs">${logs.map(
      ({ level, message, fields, from, atMs }) => html`
        <li class=${`is-${level}`}><span class="muted">${clock(new Date(atMs).toISOString())}</span> <b>${level.toUpperCase()}</b> ${message} <span class="muted">${isOfAll ? from : ''}${fields === undefined ? '' : ` ${fieldsOf(fields)}`}</span></li>`,
    )}</ul>`,
  )
}

const fieldsOf = (fields) =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
