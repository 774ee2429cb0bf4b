/** Judges a run from outside: from what was published, what lanes were given and said, and which dead letters there are. */
import type { EventFrame } from '../../src/transport/frames/event-frame.ts'
import { WANTS_REPLY } from '../../src/transport/frames/event-frame.ts'
import type { GroupPlan } from './plan.ts'

export class Finding extends Error {}

/** An event on its way to one group, or to one instance of a broadcast. */
export interface Case {
  readonly id: string
  readonly event: string
  readonly key: string | null
  readonly group: GroupPlan
  /** The group, or one instance of it. */
  readonly unit: string
  payload: string
  /** When its turn in its key's order came, and which of those of one time was published first. */
  turnMs: number
  order: number
  readonly isDelayed: boolean
  /** By the clock that somebody may set; 0: never. */
  readonly expiresMs: number
  state: 'open' | 'letter' | 'done'
  wasSent: boolean
  /** Nobody subscribes any more: it may end unhandled. */
  isExcused: boolean
  /** It was so once: those that have come under the name of its subscriber since do not wait for it, nor it for them. */
  isOfBefore: boolean
  failures: number
  isUnrecoverable: boolean
  deaths: number
  /** It must be a dead letter before anything else happens. */
  mustBeLetter: boolean
  effects: number
  /** Times that nobody can know whether there was an effect, or that the letter was replayed. */
  repeats: number
  attempt: Attempt | null
}

export interface Attempt {
  readonly of: Case
  readonly lane: number
  readonly isQuarantine: boolean
  readonly sentMs: number
  /** No thread had begun it before. */
  readonly isFirst: boolean
  /** It is on its way to the lane that has a time limit of its own: answers to one that was given up count for nothing. */
  isOver: boolean
  /** It takes one of the places of its subscriber. */
  isCounted: boolean
}

export type Outcome = 'delivered' | 'failed' | 'unrecoverable' | 'away'
const DEATHS_MAX = 3

interface World {
  nowMs(): number
  /** The latest that the clock has ever shown: what may have expired, has. */
  latestMs(): number
  steadyMs(): number
  /** True when the hub still has a letter of the event. */
  hasLetter(id: string, group: string): boolean
  isPaused(group: string): boolean
  readonly lettersDropped: number
  /** There is room for all. */
  readonly hasRoomForLetters: boolean
}

export class Oracle {
  readonly #world: World
  readonly #cases = new Map<string, Case>()
  /** Those with a key that have not ended, by unit and key. */
  readonly #places = new Map<string, Case[]>()
  readonly #running = new Map<string, number>()
  readonly #urgent = new Set<Case>()
  #suspects = 0
  #order = 0
  open = 0

  constructor(world: World) {
    this.#world = world
  }

  published(frame: EventFrame, group: GroupPlan, unit: string): void {
    const { id, event, key, payload, delayMs, ttlMs } = frame
    const each: Case = {
      id,
      event,
      key,
      group,
      unit,
      payload,
      turnMs: this.#world.steadyMs() + delayMs,
      order: ++this.#order,
      isDelayed: delayMs > 0,
      expiresMs: ttlMs === 0 ? 0 : this.#world.nowMs() + delayMs + ttlMs,
      state: 'open',
      wasSent: false,
      isExcused: false,
      isOfBefore: false,
      failures: 0,
      isUnrecoverable: false,
      deaths: 0,
      mustBeLetter: false,
      effects: 0,
      repeats: 0,
      attempt: null,
    }
    this.#cases.set(`${id} ${unit}`, each)
    this.#opened(each)
  }

  #opened(each: Case): void {
    this.open++
    if (each.key === null) return
    const place = `${each.unit} ${each.key}`
    const cases = this.#places.get(place)
    if (cases === undefined) this.#places.set(place, [each])
    else if (!cases.includes(each)) cases.push(each)
  }

  #ended(each: Case): void {
    if (each.state === 'open') this.open--
    each.state = 'done'
    this.#leavePlace(each)
  }

  #leavePlace(each: Case): void {
    if (each.key === null) return
    const cases = this.#places.get(`${each.unit} ${each.key}`)
    const at = cases?.indexOf(each) ?? -1
    if (at >= 0) cases!.splice(at, 1)
  }

  /** It was not taken after all. */
  refused(id: string, unit: string): void {
    const each = this.find(id, unit)!
    if (each.wasSent) throw new Finding(`${id} for ${unit} was sent, and refused`)
    this.#ended(each)
  }

  wasBegun(id: string): boolean {
    for (const each of this.#cases.values()) if (each.id === id && each.wasSent) return true
    return false
  }

  /** The case whose dead letter it is; of several instances of a broadcast any one. */
  letterOf(id: string, group: string): Case | undefined {
    const each = this.find(id, group)
    if (each !== undefined) return each
    for (const other of this.#cases.values())
      if (other.id === id && other.group.group === group && other.state === 'letter') return other
    return undefined
  }

  find(id: string, unit: string): Case | undefined {
    return this.#cases.get(`${id} ${unit}`)
  }

  // ── what the hub does ─────────────────────────────────────────────────────

  /** A thread was given a delivery. */
  sent(frame: EventFrame, unit: string, lane: { number: number; isQuarantine: boolean }): Attempt {
    this.settled()
    const each = this.find(frame.id, unit)
    const says = `${frame.id} for ${unit}`
    if (each === undefined) throw new Finding(`${says} was sent, and never taken`)
    if (each.state !== 'open') throw new Finding(`${says} was sent again after it was ${each.state}`)
    if (each.attempt !== null) throw new Finding(`${says} was sent to two at a time`)
    if (each.deaths >= DEATHS_MAX) throw new Finding(`${says} was sent after ${each.deaths} deaths`)
    const number = frame.attempt & (WANTS_REPLY - 1)
    if (number !== each.failures + 1) throw new Finding(`${says} is attempt ${number} after ${each.failures} failures`)
    if (frame.payload !== each.payload) throw new Finding(`${says} has another payload`)
    if (this.#world.isPaused(each.group.group)) throw new Finding(`${says} was sent while its plugin is set aside`)
    if (each.expiresMs !== 0 && !each.wasSent && each.expiresMs < this.#world.nowMs())
      throw new Finding(`${says} was sent after it had expired`)
    if (lane.isQuarantine && each.deaths === 0) throw new Finding(`${says} is no suspect, and was sent to quarantine`)
    if (each.deaths > 0 && this.#suspects > 0) throw new Finding(`${says} is a suspect, and another one is under way`)
    const running = this.#running.get(unit) ?? 0
    if (running >= (each.group.options.concurrency ?? Number.POSITIVE_INFINITY))
      throw new Finding(`${says} is one more than its subscriber takes at a time`)
    if (each.key !== null && !each.isOfBefore) this.#checkOrder(each, says)
    const isFirst = !each.wasSent
    each.wasSent = true
    this.#running.set(unit, running + 1)
    if (each.deaths > 0) this.#suspects++
    each.attempt = {
      of: each,
      lane: lane.number,
      isQuarantine: lane.isQuarantine,
      sentMs: this.#world.steadyMs(),
      isFirst,
      isOver: false,
      isCounted: true,
    }
    return each.attempt
  }

  #checkOrder(each: Case, says: string): void {
    for (const other of [...this.#places.get(`${each.unit} ${each.key}`)!]) {
      if (other === each || other.isOfBefore) continue
      if (other.attempt !== null) throw new Finding(`${says} was sent while ${other.id} of its key is handled`)
      if (!isOlder(other, each)) continue
      const mayHaveExpired = other.expiresMs !== 0 && !other.wasSent && other.expiresMs < this.#world.latestMs()
      if (mayHaveExpired) continue
      if (other.state === 'open') throw new Finding(`${says} was sent before ${other.id}, which is older, had ended`)
      if (this.#world.hasLetter(other.id, other.group.group))
        throw new Finding(`${says} was sent past the letter of ${other.id}`)
      this.#dropped(other)
    }
  }

  /** The letter was dropped for a newer one, or was never kept. */
  #dropped(each: Case): void {
    if (this.#world.lettersDropped === 0) throw new Finding(`The letter of ${each.id} for ${each.unit} is gone`)
    this.#ended(each)
  }

  /** The hub gives an attempt up. @param heldMs how long a debugger held its lane meanwhile */
  givenUp(attempt: Attempt, heldMs: number): void {
    const { of } = attempt
    if (attempt.isOver) throw new Finding(`${of.id} for ${of.unit} was given up twice`)
    const forMs = this.#world.steadyMs() - attempt.sentMs - heldMs
    if (forMs < of.group.options.timeoutMs)
      throw new Finding(`${of.id} for ${of.unit} was given up after ${forMs} ms of ${of.group.options.timeoutMs}`)
    of.repeats++
    this.#over(attempt)
    this.#failed(of)
  }

  #over(attempt: Attempt): void {
    attempt.isOver = true
    attempt.of.attempt = null
    this.#uncount(attempt)
    if (attempt.of.deaths > 0) this.#suspects--
  }

  #uncount(attempt: Attempt): void {
    if (!attempt.isCounted) return
    attempt.isCounted = false
    this.#running.set(attempt.of.unit, this.#running.get(attempt.of.unit)! - 1)
  }

  #failed(each: Case): void {
    each.failures++
    if (each.failures > each.group.options.retries || each.isUnrecoverable) this.#mustBeLetter(each)
  }

  #mustBeLetter(each: Case): void {
    each.mustBeLetter = true
    this.#urgent.add(each)
  }

  /** What had to happen at once has happened. */
  settled(): void {
    for (const each of this.#urgent)
      throw new Finding(`${each.id} for ${each.unit} has failed for good, and is no dead letter`)
  }

  /** The hub tells of a dead letter. */
  letter(id: string, group: string): void {
    for (const each of this.#urgent) {
      if (each.id !== id || each.group.group !== group) continue
      this.#urgent.delete(each)
      each.mustBeLetter = false
      if (each.state === 'open') this.open--
      each.state = 'letter'
      if (each.group.options.onDead !== 'park') this.#leavePlace(each)
      return
    }
    throw new Finding(`${id} is a dead letter of ${group}, and has neither failed for good nor killed`)
  }

  // ── what lanes do ─────────────────────────────────────────────────────────

  /** A handler has done its work. */
  effect(each: Case): void {
    each.effects++
    if (each.effects > 1 + each.repeats)
      throw new Finding(`${each.id} for ${each.unit} had its effects ${each.effects} times`)
  }

  /** The hub reads an answer. */
  answered(attempt: Attempt, outcome: Outcome): void {
    if (attempt.isOver) return
    this.#over(attempt)
    if (outcome === 'delivered') return this.#ended(attempt.of)
    // The attempt was none.
    if (outcome === 'away') return
    attempt.of.isUnrecoverable = outcome === 'unrecoverable'
    this.#failed(attempt.of)
  }

  /** A lane is gone, with what it had not answered. @param isDeath false when it was told to end */
  laneGone(attempts: Iterable<{ attempt: Attempt; isUnread: boolean }>, isDeath: boolean): void {
    for (const { attempt, isUnread } of attempts) {
      if (attempt.isOver) continue
      const { of } = attempt
      this.#over(attempt)
      // It has not begun, and may expire.
      if (isUnread && attempt.isFirst) of.wasSent = false
      of.repeats++
      if (of.group.options.broadcast) {
        this.#ended(of)
        continue
      }
      if (isDeath && !isUnread) of.deaths++
      if (of.deaths >= DEATHS_MAX) this.#mustBeLetter(of)
    }
  }

  // ── what somebody does ────────────────────────────────────────────────────

  /** An instance of a broadcast, or a whole group, is gone for good. */
  unitGone(unit: string): void {
    for (const each of this.#cases.values()) {
      if (each.unit !== unit || each.state !== 'open') continue
      each.isExcused = true
      each.isOfBefore = true
      if (each.attempt !== null) this.#uncount(each.attempt)
    }
  }

  /** @returns what brings back the state before, when the hub does not replay it */
  replaying(each: Case): () => void {
    const before = { ...each }
    each.state = 'open'
    each.isExcused = false
    each.failures = 0
    each.deaths = 0
    each.isUnrecoverable = false
    each.repeats++
    if (each.group.options.onDead !== 'park') {
      each.turnMs = this.#world.steadyMs()
      each.order = ++this.#order
    }
    this.#opened(each)
    return () => {
      this.open--
      Object.assign(each, before)
      if (before.group.options.onDead !== 'park') this.#leavePlace(each)
    }
  }

  deleted(each: Case): void {
    this.#ended(each)
  }

  /** Those that have not ended, for a finding. */
  get openOnes(): string {
    const open = [...this.#cases.values()].filter(({ state, isExcused }) => state === 'open' && !isExcused)
    return open
      .map(({ id, unit }) => `${id} for ${unit}`)
      .slice(0, 5)
      .join(', ')
  }

  /** All is healed, and nothing moves any more. */
  end(): void {
    this.settled()
    if (this.#world.hasRoomForLetters && this.#world.lettersDropped > 0)
      throw new Finding(`${this.#world.lettersDropped} letters were dropped although there was room`)
    for (const each of this.#cases.values()) {
      if (each.state === 'done' || each.isExcused) continue
      const mayHaveExpired = each.expiresMs !== 0 && !each.wasSent && each.expiresMs < this.#world.latestMs()
      if (mayHaveExpired) continue
      if (
        each.state === 'letter' &&
        this.#world.lettersDropped > 0 &&
        !this.#world.hasLetter(each.id, each.group.group)
      )
        continue
      throw new Finding(
        each.state === 'letter'
          ? `The letter of ${each.id} for ${each.unit} is gone`
          : `${each.id} for ${each.unit} is lost: ${each.wasSent ? 'it was begun' : 'nobody was given it'}, and it has not ended`,
      )
    }
  }
}

/** True when one must end before the other begins; of a delayed one and another of the same moment neither. */
function isOlder(one: Case, other: Case): boolean {
  if (one.turnMs !== other.turnMs) return one.turnMs < other.turnMs
  return !one.isDelayed && !other.isDelayed && one.order < other.order
}
