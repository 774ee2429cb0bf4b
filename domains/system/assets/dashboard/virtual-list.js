import { nothing, render } from './lit-html.js'

/** Rows above and below the visible ones that have elements too. */
const MARGIN_ROWS = 4

/** A long list in which only the visible rows have elements. All rows have the same height; below one of them there may be what it unfolds. */
export class VirtualList {
  /** The element that scrolls and has the focus; `aria-activedescendant` names the active row. */
  element = document.createElement('div')
  #canvas = document.createElement('div')
  /** What is unfolded below a row: its element, the row's index, and its height. */
  #unfolded = document.createElement('div')
  #openIndex = -1
  #openHeight = 0
  #pool = []
  #rowHeight
  #row
  #count = 0
  #viewHeight = 400

  /**
   * @param {{ rowHeight: number, row: (index: number) => unknown, onScroll: () => void, [attribute: string]: unknown }} options `row` makes
   *   the content of a row
   */
  constructor({ rowHeight, row, onScroll, ...attributes }) {
    this.#rowHeight = rowHeight
    this.#row = row
    const { element } = this
    for (const [name, value] of Object.entries({ class: 'rows', tabindex: '0', ...attributes }))
      element.setAttribute(name, String(value))
    this.#canvas.setAttribute('role', 'presentation')
    this.#unfolded.className = 'unfolded'
    this.#canvas.append(this.#unfolded)
    element.append(this.#canvas)
    element.addEventListener('scroll', onScroll, { passive: true })
    new ResizeObserver(([entry]) => {
      this.#viewHeight = entry.contentRect.height
      onScroll()
    }).observe(element)
    new ResizeObserver(() => this.#measure()).observe(this.#unfolded)
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
    this.#canvas.style.height = `${this.#height}px`
  }

  /** Shows something below a row. It keeps its row when the rows move: then this is called again. @param index -1: none */
  unfold(index, content = nothing) {
    this.#openIndex = index
    render(content, this.#unfolded)
    this.#measure()
  }

  #measure() {
    this.#openHeight = this.#unfolded.offsetHeight
    this.#unfolded.style.transform = `translateY(${(this.#openIndex + 1) * this.#rowHeight}px)`
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

  /**
   * Where a key leads to from a row.
   * @param at -1: from no row
   * @returns the index; null for a key that does not move, and in an empty list
   */
  moved(key, at) {
    const page = Math.max(1, Math.floor(this.#viewHeight / this.#rowHeight))
    const last = this.#count - 1
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[key]
    return to === undefined || last < 0 ? null : Math.max(0, Math.min(last, to))
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
      const place = document.createElement('div')
      place.className = 'row-place'
      place.setAttribute('role', 'presentation')
      this.#pool.push(place)
      this.#canvas.append(place)
    }
    // A row keeps its element while it is visible, so that the browser lays out new rows alone.
    const size = this.#pool.length
    for (const [n, place] of this.#pool.entries()) {
      const index = first + ((n - (first % size) + size) % size)
      const isShown = index < first + wanted
      if (isShown) place.style.transform = `translateY(${this.#topOf(index)}px)`
      render(isShown ? this.#row(index) : nothing, place)
    }
  }
}
