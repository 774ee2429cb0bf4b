/** Kinds of failures that are remembered. */
const KINDS_MAX = 300
const KEY = 'heddle-requests-looked-at'

/** Which failures the reader has looked at. Failures of one kind that came until then count as looked at, too. Kept by the browser. */
export class LookedAt {
  #storage
  /** Of a kind: when the newest that was looked at has begun. */
  #kinds

  /** @param {Storage} storage */
  constructor(storage) {
    this.#storage = storage
    this.#kinds = new Map(read(storage))
  }

  has(row) {
    return (this.#kinds.get(kindOf(row)) ?? 0) >= row.at_ms
  }

  /** @param {object[]} rows */
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
      this.#storage.setItem(KEY, JSON.stringify([...this.#kinds]))
    } catch {
      // A full or forbidden storage: it is known until the page is closed.
    }
  }
}

/** Failures of one kind are one line, the newest, with how many they are and all their rows. @param {object[]} rows newest first */
export function byKind(rows) {
  const kinds = new Map()
  for (const row of rows) {
    const known = kinds.get(kindOf(row))
    if (known === undefined) kinds.set(kindOf(row), { row, times: 1 })
    else known.times++
  }
  return [...kinds.values()]
}

/** What is the same for the same fault: numbers and ids in the message differ from one time to the next. */
const kindOf = ({ kind, method, plugin, route, status, error }) =>
  [kind, method, plugin, route, status, (error ?? '').replace(/[0-9a-f]{8,}|\d+/gi, '#').slice(0, 120)].join(' ')

function read(storage) {
  try {
    return JSON.parse(storage.getItem(KEY)) ?? []
  } catch {
    return []
  }
}
