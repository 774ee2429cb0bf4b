/** Everything that can be found on the page: groups of cards with their lines in the index. */
export class Catalogue {
  #entries = []
  #groups = []

  /** @param entries of the group: `card`, `link`, and `words` by which it is found */
  add(group) {
    for (const member of group.members) this.#entries.push({ ...member, text: member.words.join(' ').toLowerCase() })
    this.#groups.push(group)
  }

  /** Shows what has all the words. @returns how many are shown, and of how many */
  filter(search) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const { card, link, text } of this.#entries) {
      const isMatch = words.every((word) => text.includes(word))
      card.hidden = !isMatch
      link.hidden = !isMatch
      if (isMatch) shown++
    }
    for (const group of this.#groups) group.refresh(words.length > 0)
    return { shown, all: this.#entries.length }
  }

  /** Marks the card with this id in the index. @returns the card; undefined when there is none */
  choose(id) {
    for (const { link, card } of this.#entries) {
      const anchor = link.firstElementChild
      if (card.id === id) anchor.setAttribute('aria-current', 'true')
      else anchor.removeAttribute('aria-current')
    }
    return this.#entries.find(({ card }) => card.id === id)?.card
  }

  /** Opens the group of a card, if it is folded away. */
  reveal(card) {
    this.#groups.find(({ members }) => members.some((member) => member.card === card))?.reveal()
  }
}
