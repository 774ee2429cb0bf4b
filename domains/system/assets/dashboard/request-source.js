const ROWS_STEP = 200
/** Rows that are listed at most. */
const ROWS_MAX = 1000
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
  limit = ROWS_STEP
  #fetchJson
  #noiseMs = 0
  #noiseQuery = null

  constructor(fetchJson) {
    this.#fetchJson = fetchJson
  }

  get isFull() {
    return this.rows !== null && this.rows.length >= this.limit && this.limit < ROWS_MAX
  }

  /** Another search begins. */
  reset() {
    this.limit = ROWS_STEP
    this.#noiseMs = 0
  }

  more() {
    this.limit = Math.min(ROWS_MAX, this.limit + ROWS_STEP)
  }

  /** @param {{ parameters: Record<string, string>, isNaming: boolean }} search */
  async look({ parameters, isNaming }) {
    const asked = { ...parameters, limit: String(this.limit), ...(isNaming ? {} : { noise: 'without' }) }
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

/** Kinds of failures that are remembered. */
const KINDS_MAX = 300
const SEEN_KEY = 'heddle-requests-looked-at'

/** Which failures the reader has looked at. Failures of one kind that came until then count as looked at, too. Kept by the browser. */
export class LookedAt {
  #storage
  /** Of a kind: when the newest that was looked at has begun. */
  #kinds

  /** @param {Storage} storage */
  constructor(storage) {
    this.#storage = storage
    this.#kinds = new Map(readKinds(storage))
  }

  has(row) {
    return (this.#kinds.get(kindOf(row)) ?? 0) >= row.at_ms
  }

  /** @param {import('#heddle').RequestSummary[]} rows */
  add(rows) {
    for (const row of rows) {
      const kind = kindOf(row)
      const atMs = Math.max(row.at_ms, this.#kinds.get(kind) ?? 0)
      // The newest stay.
      this.#kinds.delete(kind)
      this.#kinds.set(kind, atMs)
    }
    while (this.#kinds.size > KINDS_MAX) this.#kinds.delete(this.#kinds.keys().next().value)
    try {
      this.#storage.setItem(SEEN_KEY, JSON.stringify([...this.#kinds]))
    } catch {
      // A full or forbidden storage: it is known until the page is closed.
    }
  }
}

/** Failures of one kind are one line, the newest, with how many they are and all their rows. @param {import('#heddle').RequestSummary[]} rows newest first */
export function byKind(rows) {
  return [...Map.groupBy(rows, kindOf).values()].map((same) => ({ row: same[0], times: same.length }))
}

/**
 * Rows as the list shows them: failures of one kind that follow each other are one line, those of the kinds that stand above the list are left out.
 * @param {import('#heddle').RequestSummary[]} rows newest first
 * @param {readonly { row: import('#heddle').RequestSummary }[]} above
 */
export function inLines(rows, above) {
  const kinds = new Set(above.map(({ row }) => kindOf(row)))
  const lines = []
  for (const row of rows) {
    const kind = row.failed ? kindOf(row) : null
    if (kind !== null && kinds.has(kind)) continue
    const last = lines.at(-1)
    if (kind !== null && last?.kind === kind) last.times++
    else lines.push({ kind, row, times: 1 })
  }
  return lines
}

/** What is the same for the same fault: numbers and ids in the message differ from one time to the next. */
const kindOf = ({ kind, method, plugin, route, status, error }) =>
  [kind, method, plugin, route, status, (error ?? '').replace(/[0-9a-f]{8,}|\d+/gi, '#').slice(0, 120)].join(' ')

function readKinds(storage) {
  try {
    return JSON.parse(storage.getItem(SEEN_KEY)) ?? []
  } catch {
    return []
  }
}
