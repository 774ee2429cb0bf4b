import { setAttribute } from '/system/dashboard/dom.js'
import { render } from '/system/dashboard/lit-html.js'

/**
 * A list in which an entry keeps its element while others come and go above it, so that a click meets what the reader sees, and the focus
 * stays where it is.
 */
export class KeyedList {
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
