import { html } from './lit-html.js'

/** Pixels per unit of the picture at most. A picture that is smaller than its place is not enlarged to fit. */
const SCALE_MAX = 3
const STEP = 1.25
/** Pixels that one key press moves. */
const KEY_PX = 60
/** Pixels that a pointer moves before it drags: until then it clicks. */
const DRAG_PX = 4
/** Pixels of the height of the place at least, and its share of the window at most. */
const HEIGHT_MIN = 180
const HEIGHT_SHARE = 0.7
/** Pixels of one line of a wheel that counts in lines. */
const LINE_PX = 16

/** What of a picture is seen. It fits whole until it is zoomed or moved: with the mouse, fingers, the wheel, keys or buttons. */
export class Viewport {
  element = document.createElement('div')
  /** What the picture is drawn in. */
  svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  #onChange
  #width = 1
  #height = 1
  /** The left upper corner, in units of the picture. */
  #x = 0
  #y = 0
  #scale = 1
  #fits = true
  /** The pointers that are down, by id. */
  #pointers = new Map()
  #isDragged = false

  /** @param onChange told when the picture has another scale */
  constructor(onChange) {
    this.#onChange = onChange
    const { element } = this
    element.className = 'viewport'
    element.append(this.svg)
    new ResizeObserver(() => this.#lay()).observe(element)
    element.addEventListener('wheel', (event) => this.#onWheel(event), { passive: false })
    element.addEventListener('pointerdown', (event) => this.#onDown(event))
    element.addEventListener('pointermove', (event) => this.#onMove(event))
    element.addEventListener('pointerup', ({ pointerId }) => this.#pointers.delete(pointerId))
    element.addEventListener('pointercancel', ({ pointerId }) => this.#pointers.delete(pointerId))
    // The click that ends a drag is none.
    element.addEventListener(
      'click',
      (event) => {
        if (!this.#isDragged) return
        event.preventDefault()
        event.stopPropagation()
      },
      { capture: true },
    )
    // A link would be dragged out of the page.
    element.addEventListener('dragstart', (event) => event.preventDefault())
    element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  /** Buttons that zoom it. */
  controls() {
    const button = (text, label, run) => html`
      <button class="quiet" type="button" aria-label=${label} title=${label} @click=${run}>${text}</button>`
    return html`
      <div class="zoom" role="group" aria-label="Zoom">
        ${button('−', 'Zoom out (−)', () => this.zoom(1 / STEP))}
        <span class="zoom-percent">${Math.round(this.#scale * 100)} %</span>
        ${button('+', 'Zoom in (+)', () => this.zoom(STEP))}
        ${button('Fit', 'Show the whole picture (0)', () => this.fit())}
      </div>`
  }

  /** The picture has this size. It is seen as the last one was. */
  resize({ width, height }) {
    this.#width = width
    this.#height = height
    this.#lay()
  }

  fit() {
    this.#fits = true
    this.#lay()
  }

  /** @param at the place that stays where it is, in pixels of the window; the middle when left out */
  zoom(factor, at) {
    const { left, top, width, height } = this.element.getBoundingClientRect()
    const [x, y] = at === undefined ? [width / 2, height / 2] : [at[0] - left, at[1] - top]
    const scale = Math.max(this.#fitScale, Math.min(SCALE_MAX, this.#scale * factor))
    this.#x += x / this.#scale - x / scale
    this.#y += y / this.#scale - y / scale
    this.#scale = scale
    this.#fits = scale === this.#fitScale
    this.#draw()
  }

  /** Moves the picture by pixels. */
  pan(dx, dy) {
    this.#fits = false
    this.#x -= dx / this.#scale
    this.#y -= dy / this.#scale
    this.#draw()
  }

  /** Moves as little as shows a part of the picture. */
  reveal({ x, y, width, height }) {
    const gap = 12 / this.#scale
    const [right, lower] = [this.#x + this.#seenWidth, this.#y + this.#seenHeight]
    const dx = x < this.#x ? x - gap - this.#x : x + width > right ? x + width + gap - right : 0
    const dy = y < this.#y ? y - gap - this.#y : y + height > lower ? y + height + gap - lower : 0
    if (dx !== 0 || dy !== 0) this.pan(-dx * this.#scale, -dy * this.#scale)
  }

  get #fitScale() {
    const { clientWidth, clientHeight } = this.element
    return Math.min(1, clientWidth / this.#width, clientHeight / this.#height)
  }

  get #seenWidth() {
    return this.element.clientWidth / this.#scale
  }

  get #seenHeight() {
    return this.element.clientHeight / this.#scale
  }

  /** As high as the picture is in this width, within bounds. */
  #lay() {
    const { element } = this
    if (element.clientWidth === 0) return
    const wanted = this.#height * Math.min(1, element.clientWidth / this.#width)
    const height = `${Math.round(Math.max(HEIGHT_MIN, Math.min(wanted, innerHeight * HEIGHT_SHARE)))}px`
    if (element.style.height !== height) element.style.height = height
    if (this.#fits) this.#scale = this.#fitScale
    this.#draw()
  }

  #draw() {
    const [width, height] = [this.#seenWidth, this.#seenHeight]
    this.#x = within(this.#x, width, this.#width)
    this.#y = within(this.#y, height, this.#height)
    this.svg.setAttribute('viewBox', `${round(this.#x)} ${round(this.#y)} ${round(width)} ${round(height)}`)
    this.element.dataset.fits = String(this.#fits)
    this.#onChange()
  }

  // ── pointers and keys ────────────────────────────────────────────────────

  #onWheel(event) {
    const { deltaY, deltaMode, clientX, clientY } = event
    // Where there is nothing left to zoom the page scrolls.
    if (deltaY > 0 && this.#fits) return
    event.preventDefault()
    this.zoom(Math.exp(-deltaY * (deltaMode === 1 ? LINE_PX : 1) * 0.0015), [clientX, clientY])
  }

  #onDown({ pointerId, clientX, clientY, button: which }) {
    if (which !== 0) return
    if (this.#pointers.size === 0) this.#isDragged = false
    this.#pointers.set(pointerId, [clientX, clientY])
  }

  /** One pointer moves the picture; two zoom it, too. */
  #onMove({ pointerId, clientX, clientY, buttons }) {
    // It may have gone up unseen, outside the picture.
    if (buttons === 0) this.#pointers.delete(pointerId)
    const from = this.#pointers.get(pointerId)
    if (from === undefined) return
    const [dx, dy] = [clientX - from[0], clientY - from[1]]
    if (!this.#isDragged && Math.hypot(dx, dy) < DRAG_PX) return
    this.#isDragged = true
    this.element.setPointerCapture(pointerId)
    this.#pointers.set(pointerId, [clientX, clientY])
    const other = [...this.#pointers].find(([id]) => id !== pointerId)?.[1]
    if (other === undefined) return this.pan(dx, dy)
    const apart = (at) => Math.max(1, Math.hypot(at[0] - other[0], at[1] - other[1]))
    const middle = [(clientX + other[0]) / 2, (clientY + other[1]) / 2]
    this.zoom(apart([clientX, clientY]) / apart(from), middle)
    this.pan(dx / 2, dy / 2)
  }

  #onKey(event) {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event
    if (ctrlKey || metaKey || altKey) return
    const move = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key]
    if (key === '+' || key === '=') this.zoom(STEP)
    else if (key === '-') this.zoom(1 / STEP)
    else if (key === '0') this.fit()
    else if (shiftKey && move !== undefined) this.pan(move[0] * KEY_PX, move[1] * KEY_PX)
    else return
    event.preventDefault()
  }
}

/** Where a window of a size begins, so that it shows as much of the picture as it can: in the middle where all of it fits. */
function within(at, seen, whole) {
  return seen >= whole ? (whole - seen) / 2 : Math.max(0, Math.min(at, whole - seen))
}

const round = (value) => Math.round(value * 100) / 100
