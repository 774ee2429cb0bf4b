import { el, facts } from './dom.js'
import { bytes, clock, count, duration, shortId } from './format.js'
import { linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

/** Steps before a death that are shown without a click. */
const STEPS_SHOWN = 40
const REASONS = {
  stalled: 'stalled',
  memory: 'ran out of memory',
  exited: 'called process.exit',
  crashed: 'crashed',
  boot: 'did not start',
  process: 'its process ended',
}

/** One black box. Its parts are rendered when it is opened. */
export function deathOf(box, isOpen) {
  const { guilty } = box
  const culprit =
    guilty === null ? 'culprit unknown' : [guilty.plugin, guilty.handler].filter(Boolean).join(' · ') || guilty.line
  const details = el(
    'details',
    { 'data-at': box.at },
    el(
      'summary',
      {},
      el('span', { class: 'state state-bad', text: `Lane ${box.lane} ${REASONS[box.reason] ?? box.reason}` }),
      el('span', { class: 'culprit', text: culprit }),
      whenAndAgo(box.at, { class: 'muted' }),
    ),
  )
  const fill = () => details.children.length > 1 || details.append(...boxParts(box))
  details.addEventListener('toggle', fill)
  if (isOpen) {
    details.open = true
    fill()
  }
  return details
}

const EVIDENCE = {
  stack: 'it was in the stack',
  origin: 'it had started what failed',
  alone: 'nothing else was in flight',
  pattern: 'it was there at each of these deaths, and seldom otherwise',
  last: 'it began last, which is a guess',
}

function boxParts(box) {
  const { guilty, stack, steps, in_flight: works, in_flight_count: worksCount } = box
  const parts = [
    facts([
      ['When', whenAndAgo(box.at), `, after ${duration(box.lived_ms)}`],
      ['Message', el('code', { class: 'wrap', text: box.message })],
      [
        'Culprit',
        guilty === null
          ? 'unknown'
          : `${guilty.plugin ?? 'no plugin'}${guilty.handler ? `, ${guilty.handler}` : ''}: ${EVIDENCE[guilty.evidence]}`,
      ],
      ['Line', guilty?.line ? el('code', { class: 'wrap', text: guilty.line }) : null],
      ['Stalled for', box.stood_still_ms === 0 ? null : duration(box.stood_still_ms)],
      ['Memory', `${bytes(box.heap_bytes)} of heap, ${bytes(box.external_bytes)} of buffers, at its last report`],
      ['CPU', box.cpu_ms === null ? null : duration(box.cpu_ms)],
    ]),
  ]
  if (stack.length > 0) parts.push(el('h3', { text: 'Stack' }), el('pre', { tabindex: '0', text: stack.join('\n') }))
  if (works.length > 0) {
    parts.push(
      el('h3', { text: `In flight: ${count(worksCount)}` }),
      el('ul', { class: 'plain' }, ...works.map((work) => workItem(work))),
    )
  }
  if (steps.length > 0) parts.push(el('h3', { text: 'Last steps, newest first' }), stepsOf(steps))
  return parts
}

/** What the lane was at work on, with the link to the request that it belongs to. */
function workItem({ kind, name, plugin, id, for_ms }) {
  const link = id === null ? null : linkToRequest(id)
  return el('li', {}, `${kind} ${name}, ${plugin}, for ${duration(for_ms)} `, link)
}

function stepsOf(steps) {
  const rows = steps
    .toReversed()
    .map(({ at, kind, name, id, duration_ms, success }) =>
      el(
        'tr',
        { 'data-errors': success ? null : 'true' },
        el('td', { text: clock(at) }),
        el('td', { text: kind }),
        el('td', {}, el('code', { text: name })),
        el('td', {}, id === null ? null : linkToRequest(id, shortId(id))),
        el('td', { class: 'number', text: duration_ms === null ? 'not ended' : duration(duration_ms) }),
      ),
    )
  const body = el('tbody', {}, ...rows.slice(0, STEPS_SHOWN))
  const box = el('div', { class: 'scrolls' }, el('table', { class: 'steps' }, body))
  const rest = rows.slice(STEPS_SHOWN)
  if (rest.length > 0) {
    const more = el('button', { class: 'quiet', type: 'button', text: `Show ${rest.length} more` })
    more.addEventListener('click', () => {
      body.append(...rest)
      more.remove()
    })
    box.append(more)
  }
  return box
}
