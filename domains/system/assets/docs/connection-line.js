import { el } from '/system/docs/dom.js'

/** Says in one line what state a connection is in, and what has gone over it. */
export class ConnectionLine {
  #text = el('span')
  #facts = el('span.meta')
  element = el('p.connection', { role: 'status' }, el('span.dot'), this.#text, this.#facts)

  constructor() {
    this.set('idle', 'Not connected')
  }

  /** @param {'idle' | 'connecting' | 'open' | 'closed' | 'failed'} state */
  set(state, text) {
    this.element.dataset.state = state
    this.#text.textContent = text
  }

  tell(...facts) {
    this.#facts.textContent = facts.join(' · ')
  }
}

export function counted(count, noun) {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
