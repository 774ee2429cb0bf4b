// What every view of the dashboard is made of.
import { render } from './lit-html.js'
import { named } from './page.js'

/** Milliseconds that are not worth a timer: the next frame is as near. */
const FRAME_MS = 20

/** A section of the dashboard. It is drawn anew in an animation frame when something has changed, and only while it is shown. */
export class View {
  element = document.createElement('section')
  /** What stands beside its name in the list of sections. */
  badge = ''
  /** What the address may name, for this view to show: `event`, `letter`; empty: nothing. */
  subject = ''
  /** What it names and was shown. */
  #sought = null
  #everyMs
  #lastMs = Number.NEGATIVE_INFINITY
  #timer
  #frame = 0

  /** @param {number} everyMs milliseconds between two drawings: a thousand changes a second are drawn ten times */
  constructor(page, title, className, everyMs = 100) {
    this.page = page
    this.title = title
    this.element.className = `view ${className}`
    this.element.setAttribute('aria-label', title)
    this.#everyMs = everyMs
    addEventListener('popstate', () => {
      this.#sought = null
      if (this.element.isConnected) this.seek()
    })
  }

  get isShown() {
    return this.element.isConnected && !document.hidden
  }

  /** @returns {unknown} what it shows */
  content() {
    return null
  }

  /** The section was chosen. */
  show() {
    this.draw()
    this.seek()
  }

  /** Shows what the address names, as soon as the view can. */
  seek() {
    const id = this.subject === '' ? null : named(this.subject)
    if (id !== null && id !== this.#sought && this.reveal(id)) this.#sought = id
  }

  /** @param {string} _id of its subject @returns {boolean} false: it cannot yet */
  reveal(_id) {
    return true
  }

  draw() {
    this.#lastMs = performance.now()
    if (this.element.isConnected) render(this.content(), this.element)
  }

  /** Asks for a drawing. @param {boolean} isUrgent in the next frame */
  paint(isUrgent = false) {
    if (this.#frame !== 0) return
    const waitMs = isUrgent ? 0 : this.#lastMs + this.#everyMs - performance.now()
    if (waitMs > FRAME_MS) {
      this.#timer ??= setTimeout(() => this.paint(true), waitMs)
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0
      this.draw()
    })
  }
}

/** A list in which an entry keeps its element while others come and go, so that a click meets what the reader sees and the focus stays. */
export class KeyedList {
  element = document.createElement('ol')
  #items = new Map()

  constructor(className, label = '') {
    this.element.className = className
    if (label !== '') this.element.setAttribute('aria-label', label)
  }

  /**
   * @param {{ key: string, attributes?: Record<string, string | null>, content: unknown }[]} entries with different keys; attributes that are
   *   null are removed
   * @returns the list
   */
  show(entries) {
    const keys = new Set(entries.map(({ key }) => key))
    for (const [key, item] of this.#items)
      if (!keys.has(key)) {
        item.remove()
        this.#items.delete(key)
      }
    let at = this.element.firstElementChild
    for (const { key, attributes = {}, content } of entries) {
      const item = this.#items.get(key) ?? document.createElement('li')
      this.#items.set(key, item)
      for (const [name, value] of Object.entries(attributes)) setAttribute(item, name, value)
      render(content, item)
      if (item === at) at = at.nextElementSibling
      else this.element.insertBefore(item, at)
    }
    return this.element
  }

  /** @returns {HTMLElement | undefined} the element of an entry */
  item(key) {
    return this.#items.get(key)
  }
}

/** Only when it differs. */
export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name)
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}
