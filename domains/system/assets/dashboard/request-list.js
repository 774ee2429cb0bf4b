import { clockSeconds, duration, plural } from './format.js'
import { html, nothing, svg } from './lit-html.js'
import { addressOfSearch, REQUESTS } from './page.js'
import { empty } from './parts.js'
import { statusBadge, titleOf } from './request-detail.js'
import { KeyedList } from './view.js'

/** Kinds of failures that are shown above the list until they were looked at. */
export const PINNED_MAX = 4
/** Height of a row, as the style sheet has it. */
export const ROW_PX = 30
/** Percent of the width that every segment has at least. */
const LEAST = 2

const lists = {
  all: new KeyedList('', 'Requests, newest first'),
  pinned: new KeyedList(''),
  noise: new KeyedList(''),
}

/**
 * The list: failures that nobody has looked at, what comes by the clock in one line, and the requests.
 * @param given `{ rows, pinned, noise, isNoiseOpen, newer, isFull, query, hints, off, outlines, chosenId, search }`
 * @param on `{ lookedAtAll, noise, newer, older, scroll, hold }`
 */
export function requestList(given, on) {
  const { rows, pinned, hints, off, query, newer, isFull } = given
  const shown = { ...given, isOfSeveral: new Set(rows?.map(({ row }) => row.replica)).size > 1 }
  if (typeof off === 'string') return empty(off)
  if (rows === null) return html`<p class="empty">Looking …</p>`
  const items = (list) => list.map(({ row, times }) => item(row, times, shown))
  return html`
    ${hints.map((hint) => html`<p class="search-hint" role="status">${hint}</p>`)}
    <div class="request-rows" @scroll=${on.scroll} @pointermove=${on.hold} @pointerleave=${on.scroll}>
      ${pinned.length === 0 ? nothing : pinnedRows(pinned, items, on)}
      ${noiseLine(shown, items, on)}
      ${newer === 0 ? nothing : html`<button class="newer" type="button" @click=${on.newer}>${plural(newer, 'new request')}</button>`}
      ${rows.length === 0 && pinned.length === 0 ? emptyHint(query) : lists.all.show(items(rows))}
      ${isFull ? html`<button class="older quiet" type="button" @click=${on.older}>Older ones</button>` : nothing}
    </div>`
}

const FILTERS = html`Filters: <code>status:5xx plugin:users.* route:/orders user:anna kind:job since:10m >200ms</code>; everything
  else is looked for in paths, errors, SQL and logs.`

const emptyHint = (query) =>
  query === ''
    ? empty('No request has come yet', 'Send one: what it does is here a moment later.')
    : empty('Nothing fits the filter', html`<p>${FILTERS}</p>`)

function pinnedRows(pinned, items, on) {
  const more = pinned.length - PINNED_MAX
  return html`
    <section class="pinned" aria-label="Failures not seen yet">
      <p class="pinned-head"><span>Not seen yet</span><button class="quiet small" type="button" @click=${on.lookedAtAll}>Mark all as seen</button></p>
      ${lists.pinned.show(items(pinned.slice(0, PINNED_MAX)))}
      ${more > 0 ? html`<p class="pinned-more"><a href=${addressOfSearch('status:failed')}>${plural(more, 'more kind')} of failure</a></p>` : nothing}
    </section>`
}

/** Runs of jobs and health checks: one line, and a line for each of them when it is open. */
function noiseLine({ noise, isNoiseOpen, isNoiseFull }, items, on) {
  const total = noise.reduce((sum, { times }) => sum + times, 0)
  if (total === 0) return nothing
  const kinds = noise.map(({ row, times }) => `${titleOf(row)} × ${times}`).join(', ')
  return html`
    <button class="noise" type="button" aria-expanded=${String(isNoiseOpen)} @click=${on.noise}>
      <span aria-hidden="true">${isNoiseOpen ? '▾' : '▸'}</span> ${total}${isNoiseFull ? '+' : ''} by the clock <span class="muted">${kinds}</span>
    </button>
    ${isNoiseOpen ? html`<div class="is-noise">${lists.noise.show(items(noise))}</div>` : nothing}`
}

function item(row, times, { chosenId, outlines, search, isOfSeveral }) {
  const { id, duration_ms: ms, failed, error, user, at_ms: atMs, began_with: beganWith } = row
  const outline = outlines.get(id)?.outline
  const replica = isOfSeveral ? row.replica : ''
  const spans = outline === undefined || outline.spans < 2 ? '' : plural(outline.spans, 'span')
  const more = (error === null ? [user ?? '', replica, spans] : [replica]).filter((text) => text !== '').join(' · ')
  const why = [beganWith === null ? '' : `began with release ${beganWith}`, error ?? ''].filter((text) => text !== '')
  return {
    key: id,
    attributes: {
      class: failed ? 'request-row is-failed' : 'request-row',
      'aria-current': chosenId === id ? 'true' : null,
    },
    content: html`
      <a href=${`${REQUESTS}/${encodeURIComponent(id)}${search}`} @keydown=${onRowKey} title=${why.join(' · ') || nothing}>
        ${statusBadge(row)}
        <span class="request-title">${times > 1 ? html`<b class="times">× ${times}</b> ` : nothing}${nameOf(row)}${more === '' ? nothing : html` <i class="muted">${more}</i>`}${why.length === 0 ? nothing : html` <small>${why.join(' · ')}</small>`}</span>
        ${fallBar(row, outline)}
        <span class="number">${duration(ms)}</span>
        <span class="number muted request-time">${clockSeconds(atMs)}</span>
      </a>`,
  }
}

const nameOf = (row) =>
  row.kind === 'job' || row.method === '' ? titleOf(row) : html`<i class="method">${row.method}</i> ${row.path}`

const SEGMENT_TONES = { request: 'accent', wait: 'warn', work: 'info', store: 'violet', event: 'ok', failed: 'bad' }

/** What it did over time. Until that is known, its duration alone. */
function fallBar({ failed, duration_ms: ms }, outline) {
  const segments =
    outline === undefined || outline.total_ms === 0
      ? [{ kind: failed ? 'failed' : 'request', from_ms: 0, ms: ms ?? 0 }]
      : outline.segments
  const total = Math.max(outline?.total_ms ?? 0, ms ?? 0, 0.001)
  return html`<svg class="row-bar" height="12" aria-hidden="true">${segments.map(({ kind, from_ms: fromMs, ms }) => {
    const width = Math.min(100, Math.max((ms / total) * 100, LEAST))
    return svg`<rect class=${`segment segment-${kind}`} data-tone=${SEGMENT_TONES[kind] ?? nothing} x=${`${Math.min((fromMs / total) * 100, 100 - width)}%`} width=${`${width}%`} y="3" height="6"></rect>`
  })}</svg>`
}

/** The arrow keys go from row to row. */
function onRowKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step === undefined) return
  const links = [...event.currentTarget.closest('.request-rows').querySelectorAll('.request-row a')]
  const next = links[links.indexOf(event.currentTarget) + step]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
