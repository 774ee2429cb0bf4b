import { el } from '/system/dashboard/dom.js'

/** Rows above and below the visible ones that have elements too. */
const MARGIN_ROWS = 4

/** A long list in which only the visible rows have elements. All rows have the same height; below one of them there may be what it unfolds. */
export class VirtualList {
  /** The element that scrolls and has the focus; `aria-activedescendant` names the active row. */
  element
  #canvas = el('div.rows-canvas', { role: 'presentation' })
  #pool = []
  #rowHeight
  #fill
  #make
  #count = 0
  #viewHeight = 400
  /** The row that is unfolded, and the element below it. */
  #openIndex = -1
  #open = null
  #openHeight = 0
  #openSize = new ResizeObserver(() => this.#measure())

  /** @param {{ rowHeight: number, make: () => HTMLElement, fill: (row: HTMLElement, index: number) => void, onScroll: () => void, [attribute: string]: unknown }} options */
  constructor({ rowHeight, make, fill, onScroll, ...attributes }) {
    this.#rowHeight = rowHeight
    this.#make = make
    this.#fill = fill
    this.element = el('div.rows', { tabindex: '0', ...attributes }, this.#canvas)
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
    return this.element.scrollTop + this.#viewHeight > this.#height - this.#rowHeight
  }

  get #height() {
    return this.#count * this.#rowHeight + this.#openHeight
  }

  #topOf(index) {
    return index * this.#rowHeight + (this.#openIndex >= 0 && index > this.#openIndex ? this.#openHeight : 0)
  }

  /** Sets the number of rows. @param moved number of rows that came above the visible ones, which then keep their place on the screen */
  setCount(count, moved = 0) {
    this.#count = count
    this.#setHeight()
    if (moved !== 0) this.element.scrollTop += moved * this.#rowHeight
  }

  #setHeight() {
    const height = `${this.#height}px`
    if (this.#canvas.style.height !== height) this.#canvas.style.height = height
  }

  /** Shows an element below a row. It keeps its row when the rows move: then this is called again. @param index -1: none */
  unfold(index, element = null) {
    this.#openIndex = index
    if (element !== this.#open) {
      this.#openSize.disconnect()
      this.#open?.remove()
      this.#open = element
      if (element !== null) {
        this.#canvas.append(element)
        this.#openSize.observe(element)
      }
    }
    this.#measure()
  }

  #measure() {
    this.#openHeight = this.#open === null ? 0 : this.#open.offsetHeight
    if (this.#open !== null) this.#open.style.transform = `translateY(${(this.#openIndex + 1) * this.#rowHeight}px)`
    this.#setHeight()
    this.paint()
  }

  scrollToEnd() {
    this.element.scrollTop = this.#height
  }

  /** Scrolls as little as shows the row, with what it unfolds as far as there is room. */
  reveal(index) {
    const top = this.#topOf(index)
    const bottom = top + this.#rowHeight + (index === this.#openIndex ? this.#openHeight : 0)
    const { scrollTop } = this.element
    if (top < scrollTop) this.element.scrollTop = top
    else if (bottom > scrollTop + this.#viewHeight) this.element.scrollTop = Math.min(top, bottom - this.#viewHeight)
  }

  /** Scrolls so that the row stands in the middle. */
  center(index) {
    this.element.scrollTop = this.#topOf(index) - (this.#viewHeight - this.#rowHeight) / 2
  }

  get rowsInView() {
    return Math.max(1, Math.floor(this.#viewHeight / this.#rowHeight))
  }

  firstInView() {
    const { scrollTop } = this.element
    const below = (this.#openIndex + 1) * this.#rowHeight
    if (this.#openIndex < 0 || scrollTop < below) return Math.floor(scrollTop / this.#rowHeight)
    return Math.max(this.#openIndex, Math.floor((scrollTop - this.#openHeight) / this.#rowHeight))
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
      const top = `translateY(${this.#topOf(index)}px)`
      if (row.style.transform !== top) row.style.transform = top
      this.#fill(row, index)
    }
  }
}
