/** Those who follow events in any process, leave, and come back; and a judge of what they are told, over all their comings. */
import type { FollowedEvent } from '../../../src/contracts/event-bus.ts'
import type { Draw } from '../draw.ts'
import { Finding } from '../oracle.ts'
import type { StoredLane } from './process.ts'

/** At the end of the `id` of the last item of all. */
const END = '!'
/** One leaves after an item, and at a look, so often, of 1. */
const LEAVES_AFTER_ITEM = 0.1
const LEAVES = 0.03
/** Interval at which it is seen whose lanes are gone, and who leaves, milliseconds. */
const LOOK_MS = 100

/** What a handler reports, of a delivery that reports anything. */
export interface Told {
  /** Grows with each handler that begins. */
  readonly number: number
  readonly id: string
  readonly group: string
  /** What it has given to `emit`. */
  emitted: number
  /** Of these, what is stored at least. */
  stored: number
  /** done, ended: everything of it is stored. failed: some of it is not. */
  state: 'running' | 'done' | 'ended' | 'failed'
}

/** What `emit` is given: the number of the handler, and that of the chunk. */
interface Chunk {
  readonly of: number
  readonly n: number
}

/** What a follower has seen of one subscriber. */
interface Seen {
  /** Number of the last chunk, as the items have it. */
  n: number
  last: Chunk | null
  /** With the last chunk. */
  run: number
}

interface Follower {
  readonly id: string
  /** The `id` of the last item. */
  from: string
  readonly seen: Map<string, Seen>
  /** Where it follows; null: it is away. */
  lane: StoredLane | null
  comings: number
  /** It stays until its stream ends. */
  readonly isPatient: boolean
}

interface World {
  readonly draw: Draw
  nowMs(): number
  later(ms: number, run: () => void): void
  tell(line: () => string): void
  failed(error: unknown): void
  /** Where somebody can follow now. */
  lanes(): StoredLane[]
  /** Groups that must have had the event, and whether they report. */
  groupsOf(id: string): { group: string; reports: boolean }[]
  hasEffects(id: string, group: string): boolean
  /** It has a dead letter now. */
  hasLetter(id: string, group: string): boolean
  mayHaveExpired(id: string, group: string): boolean
}

export class Followers {
  readonly #world: World
  readonly #all = new Set<Follower>()
  readonly #told: Told[] = []
  /** Events and groups that have had dead letters, and events that were to be taken back. */
  readonly #letters = new Set<string>()
  readonly #cancelled = new Set<string>()
  /** When events were last accepted. */
  readonly #acceptedMs = new Map<string, number>()
  #isLooking = false

  constructor(world: World) {
    this.#world = world
  }

  get open(): string[] {
    return [...this.#all].map(({ id, from, lane }) => `${id} from "${from}"${lane === null ? ', away' : ''}`)
  }

  // ── what handlers do ──────────────────────────────────────────────────────

  begins(id: string, group: string): Told {
    const told: Told = { number: this.#told.length, id, group, emitted: 0, stored: 0, state: 'running' }
    this.#told.push(told)
    return told
  }

  letter(id: string, group: string): void {
    this.#letters.add(`${id} ${group}`)
  }

  accepted(id: string): void {
    this.#acceptedMs.set(id, this.#world.nowMs())
  }

  cancelling(id: string): void {
    this.#cancelled.add(id)
  }

  // ── those who follow ──────────────────────────────────────────────────────

  follow(id: string): void {
    const isPatient = this.#world.draw.is(0.4)
    const follower: Follower = { id, from: '', seen: new Map(), lane: null, comings: 0, isPatient }
    this.#all.add(follower)
    this.#comeBack(follower)
    this.#look()
  }

  #look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    const look = (): void => {
      this.#isLooking = this.#all.size > 0
      if (!this.#isLooking) return
      for (const each of this.#all)
        if (each.lane !== null && (!each.lane.isAlive || this.#mayLeave(each, LEAVES))) this.#leave(each)
      this.#world.later(LOOK_MS, look)
    }
    this.#world.later(LOOK_MS, look)
  }

  #mayLeave({ isPatient }: Follower, rate: number): boolean {
    return !isPatient && this.#world.draw.is(rate)
  }

  #leave(follower: Follower): void {
    follower.lane = null
    follower.comings++
    this.#comeBack(follower)
  }

  #comeBack(follower: Follower): void {
    const { draw, later } = this.#world
    later(draw.of([5, 50, 50, 1000, 4000]), () => this.#come(follower))
  }

  #come(follower: Follower): void {
    const { draw, lanes, failed, tell } = this.#world
    const all = lanes()
    if (all.length === 0) return this.#comeBack(follower)
    const lane = draw.of(all)
    follower.lane = lane
    const coming = ++follower.comings
    const { id, from } = follower
    tell(() => `${id} is followed in lane ${lane.home.number}.${lane.number}${from === '' ? '' : `, from ${from}`}`)
    this.#read(follower, lane, coming).catch(failed)
  }

  async #read(follower: Follower, lane: StoredLane, coming: number): Promise<void> {
    const isHere = (): boolean => follower.comings === coming && lane.isAlive
    try {
      for await (const item of lane.follow(follower.id, follower.from)) {
        if (!isHere()) return
        this.#saw(follower, item)
        follower.from = item.id
        if (item.id.endsWith(END)) return this.#allTold(follower)
        if (this.#mayLeave(follower, LEAVES_AFTER_ITEM)) break
      }
    } catch (error) {
      if (error instanceof Finding) throw error
      if (!isHere()) return
      if ((error as { code?: unknown }).code === 'EVENT_UNKNOWN') return this.#unknown(follower)
      // As a stream that breaks off.
      this.#world.tell(() => `who follows ${follower.id} is cut off: ${String(error)}`)
    }
    if (isHere()) this.#leave(follower)
  }

  #over(follower: Follower): void {
    follower.lane = null
    follower.comings++
    this.#all.delete(follower)
  }

  // ── the judge ─────────────────────────────────────────────────────────────

  #saw({ id, seen }: Follower, item: FollowedEvent): void {
    const { subscriber, state } = item
    this.#world.tell(() => `who follows ${id} is told: ${JSON.stringify(item)}`)
    const of = seen.get(subscriber) ?? { n: 0, last: null, run: 0 }
    seen.set(subscriber, of)
    const says = `who follows ${id} was told`
    if (item.chunk !== undefined) return this.#sawChunk(of, item, says)
    if (state === 'done') this.#sawDone(id, of, item, says)
    else if (state === 'dead' && !this.#isDead(id, subscriber))
      throw new Finding(`${says} that ${subscriber} has given it up, and there is no dead letter`)
    else if (state === 'cancelled' && !this.#mayBeCancelled(id, subscriber))
      throw new Finding(`${says} that it was cancelled for ${subscriber}, and it was not`)
  }

  #sawChunk(of: Seen, { id: itemId, subscriber, chunk, missed = 0, run = 0 }: FollowedEvent, says: string): void {
    const { last } = of
    const now = chunk as Chunk
    const told = this.#told[now.of]!
    const says2 = `${says} chunk ${now.n} of handler ${now.of} for ${subscriber}`
    if (told.group !== subscriber) throw new Finding(`${says2}, which is one of ${told.group}`)
    const n = Number(new URLSearchParams(itemId.replace(END, '')).get(subscriber))
    if (n !== of.n + 1 + missed) throw new Finding(`${says2} as the ${n}th after the ${of.n}th: ${missed} were missed`)
    if (last === null || now.of !== last.of) {
      const isNewer = last === null || now.of > last.of
      // Chunks of one attempt are kept or deleted together.
      if (!isNewer || now.n !== 0) throw new Finding(`${says2} after ${last === null ? 'none' : nameOf(last)}`)
      if (missed === 0 && last !== null && this.#told[last.of]!.stored > last.n + 1)
        throw new Finding(`${says2} after ${nameOf(last)}, which had ${this.#told[last.of]!.stored}`)
    } else if (now.n !== last.n + 1) throw new Finding(`${says2} after ${nameOf(last)}`)
    const isRun = last?.of === now.of ? run >= of.run : run > of.run
    if (!isRun) throw new Finding(`${says2} of run ${run} after run ${of.run}`)
    of.n = n
    of.last = now
    of.run = run
  }

  #sawDone(id: string, { last }: Seen, { subscriber, result }: FollowedEvent, says: string): void {
    const { hasEffects, mayHaveExpired } = this.#world
    if (!hasEffects(id, subscriber)) {
      // What has expired in another process, or a dead letter that was deleted at once, looks as if it had been handled there.
      if (mayHaveExpired(id, subscriber) || this.#isDead(id, subscriber)) return
      throw new Finding(`${says} that ${subscriber} has handled it, and it has not`)
    }
    const done = this.#toldOf(id, subscriber).filter(({ state }) => state === 'done')
    if (result === undefined) {
      if (done.length > 0 && !this.#toldOf(id, subscriber).some(({ state }) => state !== 'done'))
        throw new Finding(`${says} that ${subscriber} has handled it, and nothing of its result`)
      return
    }
    const of = (result as { of: number }).of
    const told = this.#told[of]!
    if (told.id !== id || told.group !== subscriber)
      throw new Finding(`${says} the result of ${told.id} for ${told.group}`)
    const isAllSeen = told.emitted === 0 || (last?.of === of && last.n === told.emitted - 1)
    // A later one may have emitted since, and its result is not stored.
    if (!isAllSeen && !(last !== null && last.of > of))
      throw new Finding(
        `${says} the result of handler ${of}, which has emitted ${told.emitted}, after ${last === null ? 'no chunk' : nameOf(last)}`,
      )
  }

  #toldOf(id: string, group: string): Told[] {
    return this.#told.filter((told) => told.id === id && told.group === group)
  }

  #isDead(id: string, group: string): boolean {
    return this.#letters.has(`${id} ${group}`) || this.#world.hasLetter(id, group)
  }

  /** Somebody has taken it back, or deleted its dead letter. */
  #mayBeCancelled(id: string, group: string): boolean {
    return this.#cancelled.has(id) || this.#letters.has(`${id} ${group}`) || this.#world.mayHaveExpired(id, group)
  }

  #isEnded(id: string, group: string): boolean {
    return this.#world.hasEffects(id, group) || this.#isDead(id, group) || this.#mayBeCancelled(id, group)
  }

  /** The last item of all. */
  #allTold(follower: Follower): void {
    const { id } = follower
    this.#over(follower)
    for (const { group } of this.#world.groupsOf(id))
      if (!this.#isEnded(id, group)) throw new Finding(`who follows ${id} was told its end, and ${group} still has it`)
  }

  #unknown(follower: Follower): void {
    const { id } = follower
    this.#world.tell(() => `who follows ${id} is told that nothing is known of it`)
    this.#over(follower)
    // It was looked for a little earlier.
    if (this.#world.nowMs() - (this.#acceptedMs.get(id) ?? 0) < LOOK_MS) return
    for (const { group, reports } of this.#world.groupsOf(id)) {
      const isKept = reports && this.#toldOf(id, group).some(({ state }) => state === 'done')
      if (this.#isEnded(id, group) && !isKept && !this.#world.hasLetter(id, group)) continue
      throw new Finding(`who follows ${id} was told that nothing is known of it, and ${group} has it`)
    }
  }
}

const nameOf = ({ of, n }: Chunk): string => `chunk ${n} of handler ${of}`
