/** Judges a run from outside: from what was accepted, what handlers began and ended, and which dead letters there are. */
import { Finding } from '../oracle.ts'
import type { LimitPlan } from './limits.ts'
import type { PermitPlan } from './permits.ts'

export interface GroupPlan {
  readonly group: string
  readonly event: string
  readonly retries: number
  readonly parks: boolean
  /** Whose events it has take turns. */
  readonly isFair: boolean
  readonly limit: LimitPlan | null
  /** Null: any number. */
  readonly concurrency: number | null
  /** As many at a time over all processes; null: any number. */
  readonly permits: PermitPlan | null
  /** What its handlers report: nothing, progress and chunks, or a result that is kept, too. */
  readonly reports: 'nothing' | 'chunks' | 'result'
}

/** True if it asks whose an event is. */
export const isAsking = ({ isFair, limit, permits }: GroupPlan): boolean =>
  isFair || limit?.isByShare === true || permits?.isByShare === true

/** An event on its way to one group. */
interface Case {
  readonly id: string
  readonly key: string | null
  readonly group: GroupPlan
  /** An edit whose outcome is not known may have changed it. */
  readonly payloads: Set<string>
  readonly expiresMs: number
  state: 'open' | 'letter' | 'done'
  /** The process that has had it last; null: none. */
  by: object | null
  /** The process that does something to its letter. */
  operator: object | null
  /** By what moments it was asked for and accepted: a later one is older than nothing that was asked for before. */
  readonly askedAt: number
  acceptedAt: number
  wasBegun: boolean
  isRefused: boolean
  /** It has never been here: perhaps it gets the event, and perhaps not. */
  readonly isUnknown: boolean
  /** Handlers that are at work on it, but for those that nobody waits for. */
  running: number
  /** Its process is gone: what that had sent may still change it. */
  isUncertain: boolean
  effects: number
  failures: number
  isUnrecoverable: boolean
  deaths: number
  /** Failures that a process which is gone may not have noted. */
  unnoted: number
  /** Times that it may have been handled without anybody knowing. */
  repeats: number
  mayBeDeleted: boolean
  /** It was taken back, and every process knows. */
  isCancelled: boolean
  mayReturn: boolean
  /** It was a letter that holds up nothing: its replay has no place among those of its key. */
  isUnordered: boolean
}

/** A handler from its begin to its end. */
export interface Handling {
  readonly each: Case
  readonly by: object
  /** `cut off`: its lane or its process is gone, or another process has taken over: it counts no more. */
  state: 'running' | 'ended' | 'cut off'
}

/** What a case is made of beside its group. */
export interface AskedEvent {
  readonly id: string
  readonly key: string | null
  readonly payload: string
  /** By the clock that somebody may set; 0: never. */
  readonly expiresMs: number
}

interface World {
  /** The latest that the clock has shown. */
  latestMs(): number
  /** Whether the log has the event for the group. */
  isStored(id: string, group: string): boolean
  /** Whether the log knows that the group has begun with the event before that expired. */
  isBegun(id: string, group: string): boolean
  /** Whether the log has a dead letter of it that is not replayed. */
  hasLetter(id: string, group: string): boolean
  /** By which right a process may not begin with it, as the server knows; null: it may. */
  lacksRight(id: string, group: string, by: object): string | null
}

export class StoredOracle {
  readonly #world: World
  readonly #cases = new Map<string, Case>()
  readonly #places = new Map<string, Case[]>()
  readonly #handlings = new Set<Handling>()
  #moment = 0

  constructor(world: World) {
    this.#world = world
  }

  asked(
    { id, key, payload, expiresMs }: AskedEvent,
    groups: readonly GroupPlan[],
    isKnown: (group: GroupPlan) => boolean,
  ): void {
    const askedAt = ++this.#moment
    for (const group of groups) {
      const each: Case = {
        id,
        key,
        group,
        payloads: new Set([payload]),
        expiresMs,
        state: 'open',
        by: null,
        operator: null,
        askedAt,
        acceptedAt: Number.POSITIVE_INFINITY,
        wasBegun: false,
        isRefused: false,
        isUnknown: !isKnown(group),
        running: 0,
        isUncertain: false,
        effects: 0,
        failures: 0,
        isUnrecoverable: false,
        deaths: 0,
        unnoted: 0,
        repeats: 0,
        mayBeDeleted: false,
        isCancelled: false,
        mayReturn: false,
        isUnordered: false,
      }
      this.#cases.set(`${id} ${group.group}`, each)
      if (key === null) continue
      const place = `${group.group} ${key}`
      this.#places.set(place, [...(this.#places.get(place) ?? []), each])
    }
  }

  /** @param hasIt false for a group that may lack it */
  accepted(id: string, hasIt: (group: string) => boolean = () => true): void {
    const at = ++this.#moment
    for (const each of this.#cases.values())
      if (each.id === id && !each.isUnknown && hasIt(each.group.group)) each.acceptedAt = at
  }

  /** Its replay was accepted, and nobody has taken that back. */
  replayed(id: string, group: string): void {
    const each = this.find(id, group)
    each.acceptedAt = ++this.#moment
    each.mayBeDeleted = false
  }

  /** Another one is there in its place. */
  never(id: string): void {
    for (const each of this.#cases.values()) if (each.id === id) each.isCancelled = true
  }

  /** Another publication may have given it this payload. */
  mayHave(id: string, group: string, payload: string): void {
    this.#cases.get(`${id} ${group}`)?.payloads.add(payload)
  }

  /** Perhaps the group gets it, and perhaps not. */
  mayMiss(id: string, group: string): void {
    this.find(id, group).acceptedAt = Number.POSITIVE_INFINITY
  }

  /** Nobody knows whether the log has it. */
  refused(id: string): void {
    for (const each of this.#cases.values()) if (each.id === id) each.isRefused = true
  }

  find(id: string, group: string): Case {
    const each = this.#cases.get(`${id} ${group}`)
    if (each === undefined) throw new Finding(`${id} for ${group} was never published`)
    return each
  }

  /** False for an event of which the run has forgotten that it is a letter. */
  hasTold(id: string, group: string): boolean {
    return this.find(id, group).state === 'letter'
  }

  begun(id: string, group: string, payload: string, by: object): Handling {
    const each = this.find(id, group)
    const says = `${id} for ${group}`
    const lack = this.#world.lacksRight(id, group, by)
    if (lack !== null) throw new Finding(`${says} was begun ${lack}`)
    if (each.state !== 'open' && each.repeats === 0)
      throw new Finding(`${says} was begun again after it was ${each.state}`)
    if (each.isCancelled) throw new Finding(`${says} was begun after it had been taken back`)
    if (!each.payloads.has(payload)) throw new Finding(`${says} has the payload ${payload}`)
    if (each.failures > each.group.retries + each.unnoted)
      throw new Finding(`${says} was begun again after it had failed ${each.failures} times`)
    if (each.running > 0) throw new Finding(`${says} was begun twice at a time`)
    if (each.key !== null && !each.isUnordered) this.#checkOrder(each, says)
    each.wasBegun = true
    each.by = by
    each.isUncertain = false
    each.running++
    const handling: Handling = { each, by, state: 'running' }
    this.#handlings.add(handling)
    return handling
  }

  #checkOrder(each: Case, says: string): void {
    for (const other of this.#places.get(`${each.group.group} ${each.key}`)!) {
      if (other === each || other.isUnordered) continue
      if (other.running > 0) throw new Finding(`${says} was begun while ${other.id} of its key is handled`)
      if (other.acceptedAt > each.askedAt) continue
      if (this.#mayHaveExpired(other)) continue
      // What its process had sent before it died may have been done since.
      if (other.isUncertain) this.#learn(other)
      // What was handled once, and is again because a process died, is not ordered.
      if (other.state === 'open' && other.effects === 0)
        throw new Finding(`${says} was begun before ${other.id}, which is older, had ended`)
      if (other.state === 'letter' && other.group.parks)
        throw new Finding(`${says} was begun past the letter of ${other.id}`)
    }
  }

  #mayHaveExpired({ expiresMs, wasBegun }: Case): boolean {
    return expiresMs !== 0 && !wasBegun && expiresMs < this.#world.latestMs()
  }

  /** A handler has ended. */
  ended(handling: Handling, outcome: 'done' | 'failed' | 'unrecoverable' | 'away'): void {
    const { each } = handling
    const isCutOff = handling.state === 'cut off'
    this.#handlings.delete(handling)
    if (!isCutOff) {
      handling.state = 'ended'
      each.running--
    }
    if (outcome === 'away') return
    if (outcome === 'done') {
      each.effects++
      if (each.effects > 1 + each.repeats)
        throw new Finding(`${each.id} for ${each.group.group} had its effects ${each.effects} times`)
      // Somebody else has it by now, unless this process is the first to say so.
      if (!isCutOff) each.state = 'done'
      return
    }
    each.failures++
    each.isUnrecoverable ||= outcome === 'unrecoverable'
  }

  /** Its lane is gone, or its process: nobody knows how far it came. */
  cutOff(handling: Handling): void {
    const { each, state } = handling
    if (state === 'cut off') return
    if (state === 'running') each.running--
    handling.state = 'cut off'
    // Nobody may have heard of its end.
    each.unnoted = each.failures
    each.deaths++
    each.repeats++
  }

  /** Groups that must have had an event. */
  groupsOf(id: string): GroupPlan[] {
    const all = [...this.#cases.values()].filter((each) => each.id === id)
    return all.flatMap(({ group, acceptedAt }) => (acceptedAt === Number.POSITIVE_INFINITY ? [] : [group]))
  }

  /** A handler has ended with it. */
  hasEffects(id: string, group: string): boolean {
    return this.find(id, group).effects > 0
  }

  mayHaveExpired(id: string, group: string): boolean {
    return this.#mayHaveExpired(this.find(id, group))
  }

  /** Events that were accepted and have not ended. */
  get openIds(): string[] {
    const open = [...this.#cases.values()].filter(
      ({ state, acceptedAt }) => state === 'open' && acceptedAt !== Number.POSITIVE_INFINITY,
    )
    return [...new Set(open.map(({ id }) => id))]
  }

  /** Events that somebody may replay. */
  get letterIds(): string[] {
    return [...new Set([...this.#cases.values()].flatMap(({ id, state }) => (state === 'letter' ? [id] : [])))]
  }

  /** Somebody takes an event back: perhaps it is handled before, and perhaps not. */
  cancelling(id: string): void {
    for (const each of this.#cases.values()) {
      if (each.id !== id) continue
      // A replay on its way comes before or after.
      each.mayReturn ||= each.operator !== null
      each.isRefused = true
      each.mayBeDeleted = true
      each.acceptedAt = Number.POSITIVE_INFINITY
    }
  }

  cancelled(id: string): void {
    for (const each of this.#cases.values())
      if (each.id === id && each.state === 'open' && !each.mayReturn) each.isCancelled = true
  }

  /** Nobody waits for the handler any more. */
  takenBack(handling: Handling): void {
    if (handling.state !== 'running') return
    handling.state = 'cut off'
    handling.each.running--
    handling.each.repeats++
  }

  /** A dead letter is told of. */
  letter(id: string, group: string, by: object): void {
    const each = this.find(id, group)
    each.by = by
    if (each.failures <= each.group.retries && !each.isUnrecoverable && each.deaths < 3)
      throw new Finding(`${id} is a dead letter of ${group} after ${each.failures} failures and ${each.deaths} deaths`)
    each.state = 'letter'
  }

  replaying(id: string, group: string, operator: object): void {
    const each = this.find(id, group)
    each.operator = operator
    each.state = 'open'
    each.isCancelled = false
    each.mayReturn = true
    each.isUnordered = !each.group.parks
    each.failures = 0
    each.deaths = 0
    each.isUnrecoverable = false
    each.repeats++
  }

  editing(id: string, group: string, payload: string): void {
    this.find(id, group).payloads.add(payload)
  }

  deleting(id: string, group: string, operator: object): void {
    const each = this.find(id, group)
    each.operator = operator
    each.mayBeDeleted = true
  }

  /** What was asked of a letter is over, one way or another: the log has the truth. */
  settled(id: string, group: string): void {
    const each = this.find(id, group)
    each.operator = null
    this.#learn(each)
  }

  #learn(each: Case): void {
    const { id, group, acceptedAt } = each
    if (this.#world.hasLetter(id, group.group)) each.state = 'letter'
    else if (this.#world.isStored(id, group.group)) {
      if (each.state !== 'open') each.repeats++
      each.state = 'open'
    } else if (each.mayBeDeleted || this.#mayHaveExpired(each)) each.state = 'done'
    else if (each.effects > 0) each.state = 'done'
    else if (each.state !== 'done' && acceptedAt !== Number.POSITIVE_INFINITY)
      throw new Finding(`${id} for ${group.group} is ${each.state}, and the log does not have it`)
  }

  /** A process is gone. What it had, and the log still has, is delivered again. */
  processGone(gone: object): void {
    for (const handling of this.#handlings) if (handling.by === gone) this.cutOff(handling)
    for (const each of this.#cases.values()) {
      // It may have been the cause, as far as anybody knows.
      if (this.#world.isStored(each.id, each.group.group)) each.deaths++
      if (each.operator === gone) each.operator = null
      else if (each.by === null ? each.acceptedAt === Number.POSITIVE_INFINITY : each.by !== gone) continue
      if (each.by === gone) {
        each.isUncertain = true
        each.unnoted = each.failures
        // The next process knows what was noted of it.
        each.wasBegun &&= each.expiresMs === 0 || this.#world.isBegun(each.id, each.group.group)
      }
      if (each.operator === null) this.#learn(each)
    }
  }

  end(): void {
    for (const each of this.#cases.values()) {
      // What a process had sent before another took over may have been done afterwards.
      if (each.state === 'done' || each.effects > 0 || each.acceptedAt === Number.POSITIVE_INFINITY) continue
      if (this.#mayHaveExpired(each)) continue
      throw new Finding(
        `${each.id} for ${each.group.group} is lost: ${each.wasBegun ? 'it was begun' : 'nobody was given it'}, and it is ${each.state}`,
      )
    }
  }

  get openOnes(): string {
    return [...this.#cases.values()]
      .filter(({ state, acceptedAt }) => state !== 'done' && acceptedAt !== Number.POSITIVE_INFINITY)
      .slice(0, 5)
      .map(({ id, group, state }) => `${id} for ${group.group} (${state})`)
      .join(', ')
  }
}
