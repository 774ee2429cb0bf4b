/** What the hub of this process has in hand: entries of streams that it is to bring to their end, or to give back. */
export class Custody {
  readonly #pairs = new Map<string, Held>()
  readonly #onChange: (stream: string, group: string) => void

  constructor(onChange: (stream: string, group: string) => void) {
    this.#onChange = onChange
  }

  /** @param chars length of its payload */
  add(stream: string, group: string, entryId: string, chars: number): void {
    const key = `${stream} ${group}`
    let held = this.#pairs.get(key)
    if (held === undefined) {
      held = { stream, group, entries: new Map(), chars: 0 }
      this.#pairs.set(key, held)
    }
    held.chars += chars - (held.entries.get(entryId) ?? 0)
    held.entries.set(entryId, chars)
    this.#onChange(stream, group)
  }

  delete(stream: string, group: string, entryId: string): void {
    const key = `${stream} ${group}`
    const held = this.#pairs.get(key)
    const chars = held?.entries.get(entryId)
    if (held === undefined || chars === undefined) return
    held.entries.delete(entryId)
    held.chars -= chars
    if (held.entries.size === 0) this.#pairs.delete(key)
    this.#onChange(stream, group)
  }

  has(stream: string, group: string, entryId: string): boolean {
    return this.#pairs.get(`${stream} ${group}`)?.entries.has(entryId) === true
  }

  sizeOf(stream: string, group: string): { count: number; chars: number } {
    const held = this.#pairs.get(`${stream} ${group}`)
    return { count: held?.entries.size ?? 0, chars: held?.chars ?? 0 }
  }

  all(): { stream: string; group: string; ids: string[] }[] {
    return [...this.#pairs.values()].map(({ stream, group, entries }) => ({ stream, group, ids: [...entries.keys()] }))
  }
}

interface Held {
  readonly stream: string
  readonly group: string
  /** By entry id, the length of the payload. */
  readonly entries: Map<string, number>
  chars: number
}
