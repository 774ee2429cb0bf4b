import { setAttribute } from '/system/dashboard/dom.js'
import { html, nothing, render, svg } from '/system/dashboard/lit-html.js'
import { clock, duration, plural } from './format.js'
import { statusBadge, titleOf } from './request-detail.js'

const PATH = '/system/dashboard/requests'
/** Kinds of failures that are shown above the list until they were looked at. */
export const PINNED_MAX = 4
/** Height of a row, as the style sheet has it. */
export const ROW_PX = 30
/** Percent of the width that every segment has at least. */
const LEAST = 2

/**
 * A list in which an entry keeps its element while others come and go above it, so that a click meets what the reader sees, and the focus
 * stays where it is.
 */
class KeyedList {
  element = document.createElement('ol')
  #items = new Map()
  /** Of an element: what its content was made from. */
  #drawn = new WeakMap()

  constructor(label) {
    this.element.className = 'plain'
    if (label !== '') this.element.setAttribute('aria-label', label)
  }

  /**
   * @param {{ key: string, className: string, isCurrent: boolean, from: unknown[], content: () => unknown }[]} entries with different keys;
   *   an entry is drawn again only when something that its content is made from has changed
   * @returns the list
   */
  show(entries) {
    const { element } = this
    const keys = new Set(entries.map(({ key }) => key))
    for (const [key, item] of this.#items)
      if (!keys.has(key)) {
        item.remove()
        this.#items.delete(key)
      }
    let at = element.firstElementChild
    for (const { key, className, isCurrent, from, content } of entries) {
      const item = this.#items.get(key) ?? document.createElement('li')
      this.#items.set(key, item)
      if (item.className !== className) item.className = className
      setAttribute(item, 'aria-current', isCurrent ? 'true' : null)
      if (!isSame(this.#drawn.get(item), from)) render(content(), item)
      this.#drawn.set(item, from)
      if (item === at) at = at.nextElementSibling
      else element.insertBefore(item, at)
    }
    return element
  }
}

const isSame = (known, from) => known?.every((value, n) => Object.is(value, from[n])) ?? false

const lists = {
  all: new KeyedList('Requests, newest first'),
  pinned: new KeyedList(''),
  noise: new KeyedList(''),
}

/**
 * The list: failures that nobody has looked at, what comes by the clock in one line, and the requests.
 * @param given `{ rows, pinned, noise, isNoiseOpen, newer, isFull, query, hints, off, outlines, chosenId }`
 * @param on `{ link, lookedAtAll, noise, newer, older, scroll, hold }`
 */
export function requestList(given, on) {
  const { rows, pinned, hints, off, query } = given
  const shown = { ...given, isOfSeveral: new Set(rows?.map(({ replica }) => replica)).size > 1 }
  if (typeof off === 'string') return html`<div class="empty"><p class="empty-title">${off}</p></div>`
  if (rows === null) return html`<p class="empty">Looking …</p>`
  return html`
    ${hints.map((hint) => html`<p class="search-hint" role="status">${hint}</p>`)}
    <div class="request-rows" @scroll=${on.scroll} @pointermove=${on.hold} @pointerleave=${on.scroll}>
      ${pinned.length === 0 ? nothing : pinnedRows(shown, on)}
      ${noiseLine(shown, on)}
      ${shown.newer === 0 ? nothing : html`<button class="newer" type="button" @click=${on.newer}>${plural(shown.newer, 'new request')}</button>`}
      ${rows.length === 0 && pinned.length === 0 ? emptyHint(query) : lists.all.show(rows.map((row) => item(row, 1, shown, on)))}
      ${shown.isFull ? html`<button class="older quiet" type="button" @click=${on.older}>Older ones</button>` : nothing}
    </div>`
}

const emptyHint = (query) => html`
  <div class="empty"><p class="empty-title">${query === '' ? 'No request has come yet' : 'Nothing fits the filter'}</p>
  <p>${query === '' ? 'Send one: what it does is here a moment later.' : html`Filters: <code>status:5xx plugin:users.* route:/orders user:anna kind:job since:10m >200ms</code>; everything else is looked for in paths, errors, SQL and logs.`}</p></div>`

function pinnedRows(shown, on) {
  const { pinned } = shown
  const more = pinned.length - PINNED_MAX
  return html`
    <section class="pinned" aria-label="Failures not seen yet">
      <p class="pinned-head"><span>Not seen yet</span><button class="quiet small" type="button" @click=${on.lookedAtAll}>Mark all as seen</button></p>
      ${lists.pinned.show(pinned.slice(0, PINNED_MAX).map(({ row, times }) => item(row, times, shown, on)))}
      ${more > 0 ? html`<p class="pinned-more"><a href=${`${PATH}?q=status:failed`} @click=${(event) => on.link(event, null, 'status:failed')}>${plural(more, 'more kind')} of failure</a></p>` : nothing}
    </section>`
}

/** Runs of jobs and health checks: one line, and a line for each of them when it is open. */
function noiseLine(shown, on) {
  const { noise, isNoiseOpen, isNoiseFull } = shown
  const total = noise.reduce((sum, { times }) => sum + times, 0)
  if (total === 0) return nothing
  return html`
    <button class="noise" type="button" aria-expanded=${String(isNoiseOpen)} @click=${on.noise}>
      <span aria-hidden="true">${isNoiseOpen ? '▾' : '▸'}</span> ${total}${isNoiseFull ? '+' : ''} by the clock <span class="muted">${noise.map(({ row, times }) => `${titleOf(row)} × ${times}`).join(', ')}</span>
    </button>
    ${isNoiseOpen ? html`<div class="is-noise">${lists.noise.show(noise.map(({ row, times }) => item(row, times, shown, on)))}</div>` : nothing}`
}

function item(row, times, { chosenId, outlines, search, isOfSeveral }, on) {
  const { id, duration_ms: ms, failed, error, user, at_ms: atMs } = row
  const owner = isOfSeveral ? row.replica : ''
  const outline = outlines.get(id)?.outline
  return {
    key: id,
    className: failed ? 'request-row is-failed' : 'request-row',
    isCurrent: chosenId === id,
    from: [row.status, row.state, ms, failed, error, user, times, outline, search, owner],
    content: () => html`
      <a href=${`${PATH}/${encodeURIComponent(id)}${search}`} @click=${(event) => on.link(event, id)} @keydown=${onRowKey} title=${error ?? nothing}>
        ${statusBadge(row)}
        <span class="request-title">${nameOf(row)}${times > 1 ? html` <b class="times">× ${times}</b>` : nothing}${error === null ? moreOf(outline, user, owner) : html` <small>${error}</small>${ownerOf(owner)}`}</span>
        ${fallBar(row, outline)}
        <span class="number">${duration(ms)}</span>
        <span class="number muted request-time">${clock(new Date(atMs).toISOString()).slice(0, 8)}</span>
      </a>`,
  }
}

const nameOf = (row) =>
  row.kind === 'job' || row.method === '' ? titleOf(row) : html`<i class="method">${row.method}</i> ${row.path}`

/** Of several processes that share the history. */
const ownerOf = (owner) => (owner === '' ? nothing : html` <i class="muted">${owner}</i>`)

function moreOf(outline, user, owner) {
  const texts = [user ?? '', owner, outline === undefined || outline.spans < 2 ? '' : plural(outline.spans, 'span')]
  return html` <i class="muted">${texts.filter((text) => text !== '').join(' · ')}</i>`
}

/** What it did over time. Until that is known, its duration alone. */
function fallBar({ failed, duration_ms: ms }, outline) {
  const segments =
    outline === undefined || outline.total_ms === 0
      ? [{ kind: failed ? 'failed' : 'request', from_ms: 0, ms: ms ?? 0 }]
      : outline.segments
  const total = Math.max(outline?.total_ms ?? 0, ms ?? 0, 0.001)
  return html`<svg class="row-bar" height="12" aria-hidden="true">${segments.map(({ kind, from_ms: fromMs, ms }) => {
    const width = Math.min(100, Math.max((ms / total) * 100, LEAST))
    return svg`<rect class=${`segment segment-${kind}`} x=${`${Math.min((fromMs / total) * 100, 100 - width)}%`} width=${`${width}%`} y="3" height="6"></rect>`
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
