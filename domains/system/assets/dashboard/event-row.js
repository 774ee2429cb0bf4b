import { el, setAttribute, setText } from '/system/dashboard/dom.js'
import { clock, offset, plural, shortId } from './format.js'

const GUIDES = { I: 'on', T: 'tee', L: 'end', ' ': 'none' }

/** An empty row of a tree. */
export function makeRow() {
  const parts = {
    guides: el('span.guides', { 'aria-hidden': 'true' }),
    mark: el('span.unseen'),
    name: el('span.row-name'),
    from: el('span.row-from'),
    to: el('span.row-to'),
    time: el('span.row-time'),
  }
  const dot = el('span.dot', { 'aria-hidden': 'true' })
  const row = el(
    'div.row',
    { role: 'treeitem' },
    parts.guides,
    dot,
    parts.mark,
    parts.name,
    parts.from,
    parts.to,
    parts.time,
  )
  row.parts = parts
  return row
}

function stateOf(node, tree) {
  if (node === null) return tree.failed ? 'touched' : 'request'
  if (node.failures.length > 0) return 'failed'
  return node.record.event === 'event.delivery.failed' ? 'report' : 'event'
}

/**
 * Lets a row show an entry of `Forest.rows`.
 * @param {{ title: string, isChosen: boolean, isActive: boolean }} how `title` is the title of its tree
 */
export function fillRow(row, { key, node, tree, depth, guides, position, setSize }, { title, isChosen, isActive }) {
  if (row.dataset.key !== key) {
    row.dataset.key = key
    row.id = rowId(key)
  }
  const { parts } = row
  if (row.dataset.guides !== guides) {
    row.dataset.guides = guides
    parts.guides.replaceChildren(...[...guides].map((guide) => el('i', { class: `guide guide-${GUIDES[guide]}` })))
  }
  const state = stateOf(node, tree)
  setAttribute(row, 'class', `row${node === null ? ' row-request' : ''} is-${state}`)
  setAttribute(row, 'aria-level', String(depth + 1))
  setAttribute(row, 'aria-setsize', String(setSize))
  setAttribute(row, 'aria-posinset', String(position))
  setAttribute(row, 'aria-selected', String(isChosen))
  setAttribute(row, 'data-active', isActive ? 'true' : null)
  if (node === null) {
    setText(parts.name, title)
    setText(parts.from, shortId(tree.requestId))
    setText(parts.to, plural(tree.size + tree.more, 'event'))
    setText(parts.time, clock(tree.firstMs))
  } else {
    const { record } = node
    setText(parts.name, record.event)
    setText(parts.from, record.emitter)
    setText(parts.to, record.subscribers.length === 0 ? '' : `→ ${record.subscribers.join(', ')}`)
    setText(parts.time, depth === 0 ? clock(record.timestamp) : `+${offset(node.atMs - tree.firstMs)}`)
  }
  setText(parts.mark, state === 'failed' ? 'failed: ' : '')
}

/** The id of the element that shows an entry. */
export function rowId(key) {
  return `row-${key}`
}
