/** Judges from outside whether those whose events wait have their turns. */
import { priorityOf } from '../../../src/runtime/events/shares.ts'
import { Finding } from '../oracle.ts'

/** Deliveries of higher priorities after which one of a lower priority is next, with that one: HIGHER_MAX in share-line.ts. */
const LOWER_EVERY = 8
/** Pages of a round of which one begins with each priority: PAGES in turns.ts. */
const PRIORITY_EVERY = 8
/** What has lost its thread goes first, and so does what is on its way to one. */
const FIRST = 8
/** The same in the hub, for each that may be in a handler: those on their way, and as many that have lost their threads twice. */
const ON_THE_WAY = 3

interface TurnGroup {
  readonly group: string
  readonly concurrency: number | null
}

interface World {
  /** Rows of a group in the hub of a process, at most. */
  readonly room: number
  /** Shares of one priority, at most. */
  readonly shares: number
}

/** Events of a share that wait in the hub of a process, and how many of each other share have begun since one of it has. */
interface InHub {
  readonly events: Set<string>
  readonly passed: Map<string, number>
}

/** A share of a group that has events which wait. */
interface Waiting {
  /** Events that wait, and when they were accepted. */
  readonly events: Map<string, number>
  /** How many of each other share a process has begun since it has begun none of this one. */
  readonly passed: Map<object, Map<string, number>>
  readonly inHub: Map<object, InHub>
}

/**
 * A page of a round has room for one share at least, and the page before it, for shares that are known by name, may fill all the room that there is with
 * another share. So until one of a share is in the hub, each other one of its priority or a lower one begins as many as there is room for in one page
 * of two, for each share whose turn is before, and another page in order before turns begin. Shares of higher priorities do so in PRIORITY_EVERY times as many pages. In the hub one
 * begins of each share before it, and of higher priorities LOWER_EVERY - 1.
 */
export class TurnJudge {
  readonly #equalMax: number
  readonly #higherMax: number
  readonly #shares: number
  readonly #groups = new Map<string, Map<string, Waiting>>()
  readonly #askedAt = new Map<string, number>()
  #moment = 0

  constructor({ room, shares }: World) {
    this.#shares = shares
    // A group alone has half of the room at most.
    const page = Math.ceil(room / 2)
    this.#equalMax = (shares + 2) * page + shares + FIRST
    this.#higherMax = (2 * PRIORITY_EVERY * shares + 1) * page + LOWER_EVERY * shares + FIRST
  }

  asked(id: string): void {
    this.#askedAt.set(id, ++this.#moment)
  }

  #of(group: string, share: string): Waiting {
    const shares = this.#groups.get(group) ?? new Map<string, Waiting>()
    this.#groups.set(group, shares)
    const waiting = shares.get(share) ?? { events: new Map<string, number>(), passed: new Map(), inHub: new Map() }
    shares.set(share, waiting)
    return waiting
  }

  /** Nothing but its turn keeps it from being begun. */
  waits(id: string, group: string, share: string): void {
    this.#of(group, share).events.set(id, ++this.#moment)
  }

  /** The hub of a process has it, and it has a turn there. */
  taken(id: string, group: string, share: string, by: object): void {
    const { inHub } = this.#of(group, share)
    const found = inHub.get(by) ?? { events: new Set<string>(), passed: new Map<string, number>() }
    inHub.set(by, found)
    if (found.events.size === 0) found.passed.clear()
    found.events.add(id)
  }

  /** It is a dead letter, or was taken back. */
  gone(id: string, group: string): void {
    for (const { events, inHub } of this.#groups.get(group)?.values() ?? []) {
      events.delete(id)
      for (const found of inHub.values()) found.events.delete(id)
    }
  }

  /** @param concurrency of the group; null: any number @throws Finding if another share has waited for too long */
  begun(id: string, { group, concurrency }: TurnGroup, share: string, by: object): void {
    const shares = this.#groups.get(group)
    if (shares === undefined) return
    for (const [other, waiting] of shares)
      if (waiting.events.delete(id) && other !== share)
        throw new Finding(`${id} was begun for ${group} as ${share}, and is of ${other}`)
    const own = shares.get(share)
    own?.passed.clear()
    for (const found of own?.inHub.values() ?? []) {
      found.events.delete(id)
      found.passed.clear()
    }
    // A row without a share is older than those that have one.
    if (share === '') return
    for (const [other, waiting] of shares) {
      if (other === share) continue
      const isHigher = priorityOf(share) < priorityOf(other)
      const name = isHigher ? 'higher priorities' : share
      const [first] = waiting.events
      // What was told of an older event may have been lost: that of a newer one tells of both.
      if (first !== undefined && first[1] < (this.#askedAt.get(id) ?? 0)) {
        const counts = waiting.passed.get(by) ?? new Map<string, number>()
        waiting.passed.set(by, counts)
        const most = isHigher ? this.#higherMax : this.#equalMax
        this.#count(counts, name, most, () => `${first[0]} of ${other} waits for ${group}`)
      }
      const found = waiting.inHub.get(by)
      if (concurrency === null || found === undefined || found.events.size === 0) continue
      const most = (isHigher ? LOWER_EVERY * this.#shares : 2) + ON_THE_WAY * concurrency
      this.#count(found.passed, name, most, () => `${[...found.events][0]} of ${other} waits in the hub for ${group}`)
    }
  }

  #count(counts: Map<string, number>, name: string, most: number, what: () => string): void {
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    if (count > most) throw new Finding(`${what()} while ${count} of ${name} are begun: ${most} may`)
  }
}
