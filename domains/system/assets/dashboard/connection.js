import { logInIfAsked } from './page.js'

/** Milliseconds without a frame after which the connection counts as lost. The stream sends a frame every second. */
const SILENCE_MS = 8000
const RETRY_MIN_MS = 300
const RETRY_MAX_MS = 2500

/**
 * The one stream of the page. It reconnects by itself, and computes from the process's counters how many events it has missed:
 * the snapshot after a reconnect holds the last records, and the events before them are missing on the page.
 */
export class Connection {
  #handlers
  #source = null
  #timer
  #retryMs = RETRY_MIN_MS
  #lastFrameMs = 0
  /** Id of the process that sent the last snapshot. */
  #boot = null
  #total = 0
  #lostMs = 0

  /**
   * @param {{
   *   onState: (state: 'connecting' | 'live' | 'lost') => void,
   *   onFrame: (frame: import('../../dashboard/frames.ts').DashboardFrame, isOtherProcess: boolean) => void,
   *   onGap: (gap: { missed: number, shown: number, isRestart: boolean, forMs: number }) => void,
   * }} handlers
   */
  constructor(handlers) {
    this.#handlers = handlers
    this.#open()
    setInterval(() => {
      if (this.#source !== null && Date.now() - this.#lastFrameMs > SILENCE_MS) this.#lose()
    }, 1000)
    // Reconnects at once when the page is shown again or the network is back.
    for (const type of ['online', 'pageshow']) addEventListener(type, () => this.#hurry())
    document.addEventListener('visibilitychange', () => document.hidden || this.#hurry())
  }

  #hurry() {
    if (this.#source !== null) return
    clearTimeout(this.#timer)
    this.#open()
  }

  #open() {
    this.#lastFrameMs = Date.now()
    const source = new EventSource('/system/dashboard/stream')
    this.#source = source
    source.onmessage = ({ data }) => {
      if (this.#source === source) this.#take(JSON.parse(data))
    }
    // Reconnects here, since the browser gives up for good on a status such as 503, which a starting process answers.
    source.onerror = () => {
      if (this.#source === source) this.#lose()
    }
  }

  #lose() {
    this.#source.close()
    this.#source = null
    if (this.#lostMs === 0) this.#lostMs = Date.now()
    this.#handlers.onState('lost')
    void logInIfAsked()
    this.#timer = setTimeout(() => this.#open(), this.#retryMs * (0.5 + Math.random() / 2))
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 1.6)
  }

  #take(frame) {
    this.#lastFrameMs = Date.now()
    if (frame.type === 'hello') this.#greet(frame)
    else this.#handlers.onFrame(frame, false)
    this.#total = frame.events_total
  }

  #greet(frame) {
    this.#retryMs = RETRY_MIN_MS
    const isRestart = this.#boot !== null && this.#boot !== frame.boot
    const isGap = this.#boot !== null
    const since = isRestart ? 0 : this.#total
    const happened = Math.max(0, frame.events_total - since)
    const shown = Math.min(happened, frame.records.length)
    const forMs = this.#lostMs === 0 ? 0 : Date.now() - this.#lostMs
    this.#boot = frame.boot
    this.#lostMs = 0
    this.#handlers.onState('live')
    this.#handlers.onFrame(frame, isRestart)
    if (isGap) this.#handlers.onGap({ missed: happened - shown, shown, isRestart, forMs })
  }
}
