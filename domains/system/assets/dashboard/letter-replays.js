/** Milliseconds until it is asked again what has become of a replay: longer each time. */
const FIRST_MS = 150
const LAST_MS = 2000
const LIMIT = 1000
/** An answer that is older than the replay comes within this time. */
const SURE_MS = 3000

/** What has become of the letters that were replayed from this page. */
class LetterReplays {
  /** By the letter's id: the letter with its replay. */
  #letters = new Map()
  #listeners = []
  #timer
  #waitMs = FIRST_MS

  /** @param listener told when something has become of one */
  listen(listener) {
    this.#listeners.push(listener)
  }

  /** Notes that a letter was handed over. */
  begin(letter) {
    const replay = { at: new Date().toISOString(), outcome: 'running' }
    this.#letters.set(letter.id, { ...letter, replay })
    this.#waitMs = FIRST_MS
    this.#askLater()
    this.#tell()
  }

  /** Oldest first. */
  all() {
    return [...this.#letters.values()]
  }

  /** The replay of what a subscriber has failed at. */
  of({ event_id, subscriber }) {
    return this.all().findLast((each) => each.event_id === event_id && each.subscriber === subscriber)
  }

  /** Forgets those of which is known what has become. */
  forgetEnded() {
    for (const { id, replay } of this.all()) if (replay.outcome !== 'running') this.#letters.delete(id)
  }

  /** Forgets those that were not replayed after all: they are still among those that wait. */
  forgetWaiting(waiting) {
    for (const { id } of waiting) {
      const at = this.#letters.get(id)?.replay.at
      if (at !== undefined && Date.now() - Date.parse(at) > SURE_MS) this.#letters.delete(id)
    }
  }

  #askLater() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#ask(), this.#waitMs)
    this.#waitMs = Math.min(LAST_MS, this.#waitMs * 1.5)
  }

  async #ask() {
    const running = this.all().filter(({ replay }) => replay.outcome === 'running')
    if (running.length === 0) return
    const times = running.map(({ timestamp }) => Date.parse(timestamp))
    const query = new URLSearchParams({
      replayed: 'true',
      limit: String(LIMIT),
      since: new Date(Math.min(...times)).toISOString(),
      until: new Date(Math.max(...times) + 1).toISOString(),
    })
    for (const letter of await replayedLetters(query)) {
      const known = this.#letters.get(letter.id)
      if (known !== undefined) this.#letters.set(letter.id, { ...known, replay: letter.replay })
    }
    this.#tell()
    this.#askLater()
  }

  #tell() {
    for (const listener of this.#listeners) listener()
  }
}

async function replayedLetters(query) {
  try {
    const response = await fetch(`/system/dead-letters?${query}`)
    return response.ok ? await response.json() : []
  } catch {
    // The state of the connection shows it; it is asked again.
    return []
  }
}

export const letterReplays = new LetterReplays()
