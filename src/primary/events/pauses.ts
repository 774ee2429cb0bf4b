// The subscribers that somebody has paused.

export interface Pause {
  readonly event: string
  readonly group: string
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
}

/** Names have no NUL. */
const idOf = (event: string, group: string): string => `${event}\0${group}`

/** By their names: a pause also holds for a subscriber that comes later. */
export class Pauses {
  #all: ReadonlyMap<string, Pause> = new Map()

  has(event: string, group: string): boolean {
    return this.#all.size > 0 && this.#all.has(idOf(event, group))
  }

  of(event: string, group: string): Pause | undefined {
    return this.#all.get(idOf(event, group))
  }

  list(): Pause[] {
    return [...this.#all.values()]
  }

  /** @returns the names of those that are paused or resumed by it */
  replace(pauses: readonly Pause[]): Pick<Pause, 'event' | 'group'>[] {
    const before = this.#all
    this.#all = new Map(pauses.map((pause) => [idOf(pause.event, pause.group), pause]))
    return [
      ...[...before].flatMap(([id, pause]) => (this.#all.has(id) ? [] : [pause])),
      ...[...this.#all].flatMap(([id, pause]) => (before.has(id) ? [] : [pause])),
    ]
  }
}
