import { el, setText } from '/system/dashboard/dom.js'
import { ago, clock } from './format.js'

const TICK_MS = 1000
const DAY = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' })

/** A time and how long ago that is, which stays true while it is shown. */
export function whenAndAgo(timestamp, props = {}) {
  return el('time', { datetime: timestamp, title: timestamp, 'data-ago': 'true', ...props }, textOf(timestamp))
}

function textOf(timestamp) {
  const date = new Date(timestamp)
  const day = date.toDateString() === new Date().toDateString() ? '' : `${DAY.format(date)} `
  return `${day}${clock(timestamp)} · ${ago(timestamp)}`
}

setInterval(() => {
  if (document.hidden) return
  for (const element of document.querySelectorAll('time[data-ago]')) setText(element, textOf(element.dateTime))
}, TICK_MS)
