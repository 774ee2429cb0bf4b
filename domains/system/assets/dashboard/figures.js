import { el, setAttribute, setText } from './dom.js'
import { bytes, count, rate } from './format.js'
import { countOf } from './letters-view.js'
import { Sparkline } from './sparkline.js'

const CHART_SECONDS = 60
/** The scale of a chart ends at this many a second or more. */
const LEAST = 10

/** Six figures of what the process does right now. */
export class Figures {
  element
  #events = figure('Events a second', true)
  #calls = figure('Tool calls a second', true)
  #errors = figure('Errors, last minute')
  #lanes = figure('Lanes ready')
  #letters = figure('Dead letters')
  #memory = figure('Memory')
  #totalBefore = null

  constructor() {
    const all = [this.#events, this.#calls, this.#errors, this.#lanes, this.#letters, this.#memory]
    this.element = el('dl', {}, ...all.map(({ element }) => element))
  }

  onHello({ events_total }) {
    this.#totalBefore = events_total
  }

  onSecond({ events_total, calls, lanes, process }) {
    const perSecond = this.#totalBefore === null ? 0 : Math.max(0, events_total - this.#totalBefore)
    this.#totalBefore = events_total
    const sum = (key) => calls.reduce((total, each) => total + each[key], 0)
    const [callsNow, errors] = [sum('calls'), sum('minute_errors')]
    const regular = lanes.filter(({ role }) => role === 'regular')
    const ready = regular.filter(({ state, responsive }) => state === 'ready' && responsive).length
    tell(this.#events, rate(perSecond))
    tell(this.#calls, rate(callsNow))
    tell(this.#errors, count(errors), errors > 0 ? 'bad' : null)
    tell(this.#lanes, `${ready} of ${regular.length}`, ready < regular.length ? 'bad' : null)
    tell(this.#memory, bytes(process.rss_bytes))
    for (const [{ chart }, value] of [
      [this.#events, perSecond],
      [this.#calls, callsNow],
    ]) {
      chart.push(value)
      chart.paint(LEAST)
    }
  }

  onLetters(letters) {
    tell(this.#letters, countOf(letters), letters.length > 0 ? 'warn' : null)
  }
}

function figure(label, hasChart = false) {
  const value = el('dd', { text: '–' })
  const chart = hasChart ? new Sparkline(CHART_SECONDS) : null
  const element = el('div', { class: 'figure' }, el('dt', { text: label }), value, chart?.element)
  return { element, value, chart }
}

function tell({ element, value }, text, state = null) {
  setText(value, text)
  setAttribute(element, 'data-state', state)
}
