import { el } from './dom.js'

/** Rows above and below the visible ones that have elements too. */
const MARGIN_ROWS = 4

/** A long list in which only the visible rows have elements. All rows have the same height. */
export class VirtualList {
  /** The element that scrolls and has the focus; `aria-activedescendant` names the active row. */
  element
  #canvas = el('div', { class: 'rows-canvas', role: 'presentation' })
  #pool = []
  #rowHeight
  #fill
  #make
  #count = 0
  #viewHeight = 400

  /** @param {{ rowHeight: number, make: () => HTMLElement, fill: (row: HTMLElement, index: number) => void, onScroll: () => void }} options */
  constructor({ rowHeight, make, fill, onScroll, ...attributes }) {
    this.#rowHeight = rowHeight
    this.#make = make
    this.#fill = fill
    this.element = el('div', { class: 'rows', tabindex: '0', ...attributes }, this.#canvas)
    this.element.addEventListener('scroll', onScroll, { passive: true })
    new ResizeObserver(([entry]) => {
      this.#viewHeight = entry.contentRect.height
      onScroll()
    }).observe(this.element)
  }

  get isAtTop() {
    return this.element.scrollTop < this.#rowHeight / 2
  }

  get isAtEnd() {
    return this.element.scrollTop + this.#viewHeight > this.#count * this.#rowHeight - this.#rowHeight
  }

  /** Sets the number of rows. @param moved number of rows that came above the visible ones, which then keep their place on the screen */
  setCount(count, moved = 0) {
    if (count !== this.#count) this.#canvas.style.height = `${count * this.#rowHeight}px`
    this.#count = count
    if (moved !== 0) this.element.scrollTop += moved * this.#rowHeight
  }

  scrollToEnd() {
    this.element.scrollTop = this.#count * this.#rowHeight
  }

  reveal(index) {
    const top = index * this.#rowHeight
    const { scrollTop } = this.element
    if (top < scrollTop) this.element.scrollTop = top
    else if (top + this.#rowHeight > scrollTop + this.#viewHeight)
      this.element.scrollTop = top + this.#rowHeight - this.#viewHeight
  }

  get rowsInView() {
    return Math.max(1, Math.floor(this.#viewHeight / this.#rowHeight))
  }

  firstInView() {
    return Math.floor(this.element.scrollTop / this.#rowHeight)
  }

  paint() {
    const first = Math.max(0, this.firstInView() - MARGIN_ROWS)
    const wanted = Math.min(this.#count - first, Math.ceil(this.#viewHeight / this.#rowHeight) + 2 * MARGIN_ROWS)
    while (this.#pool.length < wanted) {
      const row = this.#make()
      this.#pool.push(row)
      this.#canvas.append(row)
    }
    // A row keeps its element while it is visible, so that the browser lays out new rows alone.
    const size = this.#pool.length
    for (let n = 0; n < size; n++) {
      const index = size === 0 ? 0 : first + ((n - (first % size) + size) % size)
      const row = this.#pool[n]
      const isShown = index < first + wanted
      if (row.hidden === isShown) row.hidden = !isShown
      if (!isShown) continue
      const top = `translateY(${index * this.#rowHeight}px)`
      if (row.style.transform !== top) row.style.transform = top
      this.#fill(row, index)
    }
  }
}
