import { html, nothing, svg } from '/system/dashboard/lit-html.js'
import { duration, plural } from './format.js'

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
      <span class="fall-thread" role="cell" data-thread=${toneOf(thread)}>${thread}</span>
      <svg class="fall-bar" role="cell" height="14" aria-label=${`from ${duration(atMs)}`}>${barsOf(row, endMs)}</svg>
      <span class="number" role="cell">${duration(ms)}</span>
    </div>`
}

/** The waits are hatched: of a delivery what lies between the attempts, of an attempt what came before it. */
function barsOf({ kind, atMs, ms, waits }, endMs) {
  const own = kind === 'delivery' ? svg`${bar('bar-delivery', atMs, ms, endMs)}` : nothing
  return svg`${own}${waits.map((wait) => bar(kind === 'delivery' ? 'bar-wait' : 'bar-before', wait.atMs, wait.ms, endMs))}
    ${kind === 'delivery' ? nothing : bar(`bar-${kind}`, atMs, ms, endMs)}`
}

function bar(kind, atMs, ms, endMs) {
  const width = Math.min(100, Math.max(((ms ?? 0) / endMs) * 100, LEAST))
  const x = Math.min((atMs / endMs) * 100, 100 - width)
  const isThin = kind === 'bar-before'
  const fill = kind === 'bar-wait' ? 'url(#request-wait)' : nothing
  return svg`<rect class=${`bar ${kind}`} fill=${fill} x=${`${x}%`} width=${`${width}%`} y=${isThin ? 6.5 : 2} height=${isThin ? 1 : 10} rx=${isThin ? 0 : 2}></rect>`
}

/** What hatches a wait; once in the section, since patterns are found by their ids. */
export const hatching = html`
  <svg class="unseen" aria-hidden="true"><defs>
    <pattern id="request-wait" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatch-ground" width="6" height="6"></rect><rect class="hatch-line" width="2" height="6"></rect>
    </pattern>
  </defs></svg>`

/** Lanes get colours by their number. */
function toneOf(thread) {
  const [, lane] = /lane (\d+)$/.exec(thread) ?? []
  return lane === undefined ? 'primary' : String(Number(lane) % 4)
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
