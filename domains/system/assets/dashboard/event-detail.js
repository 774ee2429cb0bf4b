import { copyButton, el, facts } from '/system/dashboard/dom.js'
import { count, offset, plural, shortId } from './format.js'
import { letterReplays } from './letter-replays.js'
import { addressOfLetter, inPage, linkToRequest } from './links.js'
import { outcomeOf } from './replay-item.js'
import { whenAndAgo } from './times.js'

/** The details of a request or an event: its record, its cause, and the deliveries that failed. */
export class EventDetail {
  element = el('aside.card.detail', { 'aria-label': 'The chosen event', tabindex: '-1' })
  #page
  #forest
  #titleOf
  #choose

  /**
   * @param page the state that the views share
   * @param {{ forest: import('./forest.js').Forest, titleOf: (tree: object) => string, choose: (key: string) => void }} list
   */
  constructor(page, { forest, titleOf, choose }) {
    this.#page = page
    this.#forest = forest
    this.#titleOf = titleOf
    this.#choose = choose
  }

  /**
   * Renders the details again, and keeps the focus on the same button.
   * @param key of an event or a tree; null when nothing is chosen
   */
  show(key) {
    const within = this.element.contains(document.activeElement) ? nameOf(document.activeElement) : null
    this.element.replaceChildren(...this.#parts(key))
    if (within === null) return
    const same = [...this.element.querySelectorAll('button')].find((button) => nameOf(button) === within)
    ;(same ?? this.element).focus()
  }

  #parts(key) {
    const node = this.#forest.node(key)
    if (node !== undefined) return this.#eventDetail(node)
    const tree = this.#forest.tree(key)
    if (tree !== undefined) return this.#requestDetail(tree)
    if (key === null) return [el('p.note', {}, 'Choose a row to see its record, its request and its outcome.')]
    return [
      el('h2', {}, 'It is no longer in the list'),
      el('p.note', {}, 'The page keeps the last 2000 events; newer ones have taken its place.'),
      linkToRequest(key.replace(/^request:/, ''), 'What the history keeps of it'),
    ]
  }

  #requestDetail(tree) {
    const traceId = tree.roots.find(({ record }) => record.trace_id)?.record.trace_id
    return [
      el('h2', {}, this.#titleOf(tree)),
      facts([
        ['Request', linkToRequest(tree.requestId), copyButton(() => tree.requestId, 'the request id')],
        traceRow(traceId),
        ['Answered by', [...new Set(tree.roots.map(({ record }) => record.emitter))].join(', ')],
        ['First event', whenAndAgo(tree.roots[0].record.timestamp)],
        ['Events', `${count(tree.size + tree.more)}, over ${offset(tree.lastMs - tree.firstMs)}`],
        ['Not kept', tree.more === 0 ? null : `${plural(tree.more, 'event')} of this tree are counted, not drawn`],
      ]),
    ]
  }

  #eventDetail(node) {
    const { record, tree, children, failures } = node
    const link = (id, text) => el('button.linkish', { type: 'button', click: () => this.#choose(id) }, text)
    const cause =
      record.parent_id === null
        ? record.request_id === null
          ? 'nothing: published outside of any subscriber'
          : link(tree.key, this.#titleOf(tree))
        : this.#forest.node(record.parent_id) !== undefined
          ? link(record.parent_id, this.#forest.node(record.parent_id).record.event)
          : `${shortId(record.parent_id)}, no longer kept`
    return [
      el('h2', {}, record.event),
      facts([
        ['Id', el('code', {}, record.id), copyButton(() => record.id, 'the event id')],
        ['Published', whenAndAgo(record.timestamp), `, by ${record.emitter}`],
        ['Caused by', cause],
        ['Request', ...requestOf(record)],
        traceRow(record.trace_id),
        ['Subscribers', record.subscribers.length === 0 ? 'nobody' : record.subscribers.join(', ')],
        ['Payload keys', record.payload_keys.length === 0 ? 'none' : chips(record.payload_keys)],
        ['Has caused', children.length === 0 ? 'nothing so far' : plural(children.length, 'event')],
      ]),
      ...failures.map((failure) => this.#failureCard(failure)),
    ]
  }

  #failureCard({ event_id, subscriber, error, attempts }) {
    const replayed = letterReplays.of({ event_id, subscriber })
    const letter = this.#page.deadLetters.find((each) => each.event_id === event_id && each.subscriber === subscriber)
    return el(
      'div.failure',
      {},
      el('h3', {}, `${subscriber} failed`),
      facts([
        [
          'Attempts',
          attempts === 1 ? '1, no retry' : `${attempts}, of them ${plural(attempts - 1, 'retry', 'retries')}`,
        ],
        ['Error', el('code.wrap', {}, error)],
        ['Dead letter', letter === undefined ? null : inPage(addressOfLetter(letter.id), letter.id)],
        ['Replay', replayed === undefined ? null : outcomeOf(replayed.replay)],
      ]),
      letter === undefined ? null : this.#page.letterButtons(letter),
    )
  }
}

function nameOf(element) {
  return element.getAttribute('aria-label') ?? element.textContent
}

/** Of an event that no request has caused, the run of the job that has, if one has. */
function requestOf({ id, request_id: requestId }) {
  return requestId === null
    ? ['none: not caused by a request', linkToRequest(id, 'What it belongs to')]
    : [linkToRequest(requestId), copyButton(() => requestId, 'the request id')]
}

function traceRow(traceId) {
  return ['Trace id', ...(traceId ? [el('code', {}, traceId), copyButton(() => traceId, 'the trace id')] : [])]
}

function chips(texts) {
  return el('span.chips', {}, ...texts.map((text) => el('code.chip', {}, text)))
}
