import { el, facts } from '/system/dashboard/dom.js'
import { bytes, clock, count, duration, shortId } from './format.js'
import { linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

/** Steps before a death that are shown without a click. */
const STEPS_SHOWN = 40
const REASONS = {
  stalled: 'stalled',
  memory: 'ran out of memory',
  descriptors: 'held too many files open',
  exited: 'called process.exit',
  crashed: 'crashed',
  broken: 'had a broken builtin',
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
      el('span.state.state-bad', {}, `Lane ${box.lane} ${REASONS[box.reason] ?? box.reason}`),
      el('span.culprit', {}, culprit),
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
      ['Message', el('code.wrap', {}, box.message)],
      [
        'Culprit',
        guilty === null
          ? 'unknown'
          : `${guilty.plugin ?? 'no plugin'}${guilty.handler ? `, ${guilty.handler}` : ''}: ${EVIDENCE[guilty.evidence]}`,
      ],
      ['Line', guilty?.line ? el('code.wrap', {}, guilty.line) : null],
      ['Stalled for', box.stood_still_ms === 0 ? null : duration(box.stood_still_ms)],
      ['Memory', `${bytes(box.heap_bytes)} of heap, ${bytes(box.external_bytes)} of buffers, at its last report`],
      ['CPU', box.cpu_ms === null ? null : duration(box.cpu_ms)],
    ]),
  ]
  if (stack.length > 0) parts.push(el('h3', {}, 'Stack'), el('pre', { tabindex: '0' }, stack.join('\n')))
  if (works.length > 0) {
    parts.push(
      el('h3', {}, `In flight: ${count(worksCount)}`),
      el('ul.plain', {}, ...works.map((work) => workItem(work))),
    )
  }
  if (steps.length > 0) parts.push(el('h3', {}, 'Last steps, newest first'), stepsOf(steps))
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
        el('td', {}, clock(at)),
        el('td', {}, kind),
        el('td', {}, el('code', {}, name)),
        el('td', {}, id === null ? null : linkToRequest(id, shortId(id))),
        el('td.number', {}, duration_ms === null ? 'not ended' : duration(duration_ms)),
      ),
    )
  const body = el('tbody', {}, ...rows.slice(0, STEPS_SHOWN))
  const box = el('div.scrolls', {}, el('table.steps', {}, body))
  const rest = rows.slice(STEPS_SHOWN)
  if (rest.length > 0) {
    const more = el('button.quiet', { type: 'button' }, `Show ${rest.length} more`)
    more.addEventListener('click', () => {
      body.append(...rest)
      more.remove()
    })
    box.append(more)
  }
  return box
}
