import { el } from '/system/docs/dom.js'

let count = 0

/**
 * A group of cards, and its part of the index. A group that is folded away shows its name and how much it has, until it is opened or something in it is
 * searched for.
 * @param {{ name: string, members: { card: HTMLElement, link: HTMLElement }[], isFolded?: boolean }} group
 */
export class GroupView {
  members
  section
  nav
  #isFolded

  constructor({ name, members, isFolded = false }) {
    const id = `group-${count++}`
    const cards = members.map(({ card }) => card)
    const links = el('ul', {}, ...members.map(({ link }) => link))
    this.members = members
    this.#isFolded = isFolded
    const size = el('span.group-size', {}, String(members.length))
    if (isFolded) {
      this.section = el(
        'details.group',
        {},
        el('summary.group-line.fold-line', {}, el('h2', { id }, name), size),
        ...cards,
      )
      this.nav = el('details', {}, el('summary.fold-line', {}, el('h3', {}, name), size.cloneNode(true)), links)
    } else {
      this.section = el('section.group', { 'aria-labelledby': id }, el('h2', { id }, name), ...cards)
      this.nav = el('section', {}, el('h3', {}, name), links)
    }
  }

  /** After the members are shown or hidden. */
  refresh(isSearching) {
    const isEmpty = this.members.every(({ card }) => card.hidden)
    this.section.hidden = isEmpty
    this.nav.hidden = isEmpty
    if (this.#isFolded) this.#unfold(isSearching && !isEmpty)
  }

  /** Shows what is folded away. */
  reveal() {
    if (this.#isFolded) this.#unfold(true)
  }

  #unfold(isOpen) {
    this.section.open = isOpen
    this.nav.open = isOpen
  }
}
