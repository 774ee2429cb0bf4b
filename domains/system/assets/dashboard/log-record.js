import { copyButton, el, facts } from '/system/dashboard/dom.js'
import { clock, shortId } from './format.js'
import { linkToRequest } from './links.js'

/** Characters of a message that find its row in a request. */
const SPAN_CHARS = 40
/** Fields that are shown apart from the others. */
const APART = new Set(['stack', 'request_id', 'event_id'])

/** Whether a record fits a text, which is in lower case: it is looked for in all that the record has. */
export function isFound(record, wanted) {
  if (wanted === '') return true
  record.text ??= [record.message, record.identity, record.request_id, record.event_id, JSON.stringify(record.fields)]
    .filter(Boolean)
    .join('\n')
    .toLowerCase()
  return record.text.includes(wanted)
}

/** The request of a record; of one that no request has caused, what its event belongs to. */
export const causeOf = ({ request_id, event_id }) => request_id ?? event_id ?? null

/** The row of a request in which a record was logged. */
const spanOf = ({ timestamp, message }) => `log@${Date.parse(timestamp)}@${message.slice(0, SPAN_CHARS)}`

/** What a line unfolds: the whole message, the fields, the stack, and what it belongs to. */
export function recordDetail(record, onClose) {
  const { level, message, timestamp, identity, fields = {}, request_id, event_id } = record
  const stack = typeof fields.stack === 'string' ? fields.stack : null
  const shown = Object.entries(fields).filter(([name]) => !APART.has(name))
  const { text, n, ...whole } = record
  return el(
    'div.log-detail',
    { role: 'group', 'aria-label': 'The unfolded record' },
    facts([
      ['Message', el('code.wrap', {}, message)],
      ...shown.map(([name, value]) => [name, el('code.wrap', {}, shownValue(value))]),
      ['Request', request_id ? linkToRequest(request_id, request_id, spanOf(record)) : null],
      ['Event', event_id ? linkToRequest(event_id) : null],
      ['At', `${clock(timestamp)} · ${timestamp}`],
      ['From', `${identity}, ${level}`],
    ]),
    stack === null ? null : el('pre.wrap', { tabindex: '0', 'aria-label': 'Stack' }, stack),
    el(
      'div.actions',
      {},
      copyButton(() => JSON.stringify(whole, null, 2), 'the record as JSON'),
      el('button.quiet.small', { type: 'button', click: onClose }, 'Close'),
    ),
  )
}

const shownValue = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1))

/** An empty line. */
export function makeRow() {
  const parts = {
    time: el('span.row-time'),
    level: el('span.log-level'),
    identity: el('span.row-from'),
    message: el('span.log-message'),
    fields: el('span.log-fields'),
    cause: el('span.log-cause'),
  }
  const row = el('div.row.log', { role: 'treeitem' }, ...Object.values(parts))
  row.parts = parts
  return row
}

/** The fields of a record in one line. */
export function fieldsText({ fields = {} }) {
  return Object.entries(fields)
    .filter(([name]) => !APART.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('  ')
}

/** Lets a row show the link to what a record belongs to. It is reached with the keyboard in what the line unfolds. */
export function fillCause(cell, record) {
  const id = causeOf(record)
  if (id === null) return cell.replaceChildren()
  const link = linkToRequest(id, shortId(id), spanOf(record))
  link.tabIndex = -1
  link.title = id
  cell.replaceChildren(link)
}
