import { byKind } from './request-looked.js'

const LIMIT = 200
/** Rows that are listed at most. */
const LIMIT_MAX = 1000
const NOISE_LIMIT = 300
/** Milliseconds between two looks at what comes by the clock. */
const NOISE_MS = 5000
/** A request that is so young may still cause something. Milliseconds. */
const YOUNG_MS = 10_000
/** Milliseconds between two questions about the same one. */
const AGAIN_MS = 2000
const OUTLINES_MAX = 1500
/** Outlines of one question; the process answers no more. */
const ASKED_MAX = 60

/** Asks the process for lists of requests, and keeps what they were. */
export class RequestSource {
  /** Newest first; null until the first answer. */
  rows = null
  /** Failures, newest first; none where the list is filtered. */
  failures = []
  /** What comes by the clock: `{ row, times }`. */
  noise = []
  isNoiseFull = false
  /** By id: `{ outline, atMs }`. */
  outlines = new Map()
  limit = LIMIT
  #fetchJson
  #noiseMs = 0
  #noiseQuery = null

  constructor(fetchJson) {
    this.#fetchJson = fetchJson
  }

  get isFull() {
    return this.rows !== null && this.rows.length >= this.limit && this.limit < LIMIT_MAX
  }

  /** Another search begins. */
  reset() {
    this.limit = LIMIT
    this.#noiseMs = 0
  }

  more() {
    this.limit = Math.min(LIMIT_MAX, this.limit + LIMIT)
  }

  /** @param {{ parameters: Record<string, string>, isNaming: boolean }} search */
  async look({ parameters, isNaming }) {
    const asked = { ...parameters, limit: String(this.limit) }
    if (!isNaming) asked.noise = 'without'
    const isAll = Object.keys(parameters).length === 0
    const [rows, failures] = await Promise.all([
      this.#list(asked),
      isAll ? this.#list({ status: 'failed', limit: '100' }) : [],
    ])
    await this.#lookAtNoise(parameters, isNaming)
    return { rows, failures }
  }

  async #lookAtNoise(parameters, isNaming) {
    const query = JSON.stringify(Object.keys(parameters))
    if (isNaming || 'status' in parameters) {
      this.noise = []
      return
    }
    if (query === this.#noiseQuery && Date.now() - this.#noiseMs < NOISE_MS) return
    this.#noiseMs = Date.now()
    this.#noiseQuery = query
    const rows = await this.#list({ ...parameters, noise: 'only', limit: String(NOISE_LIMIT) })
    this.noise = byKind(rows ?? [])
    this.isNoiseFull = rows?.length === NOISE_LIMIT
  }

  #list(parameters) {
    return this.#fetchJson(`/system/requests?${new URLSearchParams(parameters)}`)
  }

  one(id) {
    return this.#fetchJson(`/system/requests/${encodeURIComponent(id)}`)
  }

  /** Asks what these did over time, where that is not known or may have changed. @returns whether something has come */
  async outline(rows) {
    const nowMs = Date.now()
    const wanted = rows.filter((row) => this.#isWanted(row, nowMs)).slice(0, ASKED_MAX)
    if (wanted.length === 0) return false
    const ids = wanted.map(({ id }) => encodeURIComponent(id)).join(',')
    const found = (await this.#fetchJson(`/system/requests/outlines?ids=${ids}`)) ?? {}
    for (const { id } of wanted) {
      this.outlines.delete(id)
      if (found[id] !== undefined) this.outlines.set(id, { outline: found[id], atMs: nowMs })
    }
    // The oldest go.
    for (const id of this.outlines.keys()) {
      if (this.outlines.size <= OUTLINES_MAX) break
      this.outlines.delete(id)
    }
    return true
  }

  #isWanted({ id, at_ms: atMs, duration_ms: ms }, nowMs) {
    const known = this.outlines.get(id)
    if (known === undefined) return true
    const wasYoung = ms === null || known.atMs - atMs - ms < YOUNG_MS
    return wasYoung && nowMs - known.atMs > AGAIN_MS
  }
}
