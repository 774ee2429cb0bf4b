import { el } from '/system/docs/dom.js'

/** Fields that a line names; of the rest it tells how many. */
const FIELDS_SHOWN_MAX = 6

/** Everything that can be found on the page: groups of cards with their lines in the index. */
export class Catalogue {
  #entries = []
  #groups = []

  /** @param group of members: `card`, `link`, `words` by which it is found, and `fields` with their places: `body email` */
  add(group) {
    for (const { card, link, words, fields } of group.members) {
      const found = el('p.found-fields', { hidden: true })
      card.querySelector('summary').append(found)
      this.#entries.push({ card, link, fields, found, text: [...words, ...fields].join(' ').toLowerCase() })
    }
    this.#groups.push(group)
  }

  /** Shows what has all the words. @returns how many are shown, and of how many */
  filter(search) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const entry of this.#entries) {
      const isMatch = words.every((word) => entry.text.includes(word))
      entry.card.hidden = !isMatch
      entry.link.hidden = !isMatch
      if (isMatch) {
        shown++
        showFields(entry, words)
      }
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

/** Names the fields by which something was found. */
function showFields({ fields, found }, words) {
  const hits = fields.filter((field) => words.some((word) => field.toLowerCase().includes(word)))
  const shown = hits.slice(0, FIELDS_SHOWN_MAX).map((field) => el('code', {}, field))
  const rest = hits.length - shown.length
  found.replaceChildren(...shown, ...(rest > 0 ? [`and ${rest} more`] : []))
  found.hidden = hits.length === 0
}
