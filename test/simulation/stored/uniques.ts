/** Judges from outside whether of events with the same `unique` one is there at a time, and none is lost. */
import type { UniqueEvent } from '../../../src/transport/frames/event-frame.ts'
import { Finding } from '../oracle.ts'

/** A publication, and what came of it. */
export interface Asked {
  readonly id: string
  readonly unique: UniqueEvent
  readonly payload: string
  readonly groups: readonly string[]
  readonly askedAt: number
  /** Events of the name that the log had when it was asked for, by group. */
  readonly stored: ReadonlyMap<string, ReadonlySet<string>>
  /** The thread that has asked. */
  readonly by: { readonly isAlive: boolean }
  /** Infinite while nobody knows. */
  answeredAt: number
  /** The id that it was answered with; null: it was refused, and may be there all the same. */
  answer: string | null
  /** Groups that had begun the one it was answered with: it has replaced nothing there. */
  begunIn: ReadonlySet<string>
}

interface World {
  /** Whether the log has it for the group, perhaps for all that will be known. */
  isStored(id: string, group: string): boolean
  isIn(id: string, group: string): boolean
  /** Whether the log knows that the group has begun it: its handler may never have been called. */
  isBegun(id: string, group: string): boolean
  /** Perhaps the group gets it, and perhaps not. */
  mayMiss(id: string, group: string): void
  /** Another publication may have given it this payload. */
  mayHave(id: string, group: string, payload: string): void
}

export class UniqueJudge {
  readonly #world: World
  readonly #names = new Map<string, Asked[]>()
  readonly #byId = new Map<string, Asked[]>()
  /** When a handler of a group first began an event. */
  readonly #begun = new Map<string, number>()
  #moment = 0

  constructor(world: World) {
    this.#world = world
  }

  asked(
    event: string,
    { id, payload, unique }: { id: string; payload: string; unique: UniqueEvent },
    groups: readonly string[],
    by: Asked['by'],
  ): Asked {
    const name = `${event} ${unique.while} ${unique.name}`
    const all = this.#names.get(name) ?? []
    this.#names.set(name, all)
    this.#byId.set(id, all)
    const stored = new Map(
      groups.map((group) => [
        group,
        new Set(all.filter((each) => this.#world.isStored(each.id, group)).map((each) => each.id)),
      ]),
    )
    if (unique.replaces)
      for (const each of all) for (const group of groups) this.#world.mayHave(each.id, group, payload)
    const asked: Asked = {
      id,
      unique,
      payload,
      groups,
      askedAt: ++this.#moment,
      stored,
      by,
      answeredAt: Number.POSITIVE_INFINITY,
      answer: null,
      begunIn: new Set(),
    }
    // One that is under way may replace it, too.
    for (const each of all)
      if (each.answeredAt === Number.POSITIVE_INFINITY && each.unique.replaces)
        for (const group of groups) this.#world.mayHave(id, group, each.payload)
    all.push(asked)
    return asked
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  refused(asked: Asked): void {
    asked.answeredAt = ++this.#moment
    this.#mayReplace(asked)
  }

  /** Threads have ended: what they had asked for may have been done. */
  threadsEnded(): void {
    for (const all of this.#names.values())
      for (const asked of all)
        if (!asked.by.isAlive && asked.answeredAt === Number.POSITIVE_INFINITY) this.#mayReplace(asked)
  }

  /** One that was stored before the groups were known takes the place of one that waits, also of one that was stored meanwhile. */
  #mayReplace(asked: Asked): void {
    const { id, unique, stored, groups } = asked
    if (unique.while !== 'waiting') return
    const meanwhile = this.#byId.get(id)!.filter((each) => each !== asked && each.answeredAt > asked.askedAt)
    for (const group of groups)
      for (const other of [...stored.get(group)!, ...meanwhile.map((each) => each.id)])
        if (!this.#begun.has(`${other} ${group}`)) this.#world.mayMiss(other, group)
  }

  /** @returns the groups that must have it. @throws Finding if the one that it was answered with was not there */
  answered(asked: Asked, answer: string): ReadonlySet<string> {
    asked.answeredAt = ++this.#moment
    asked.answer = answer
    asked.begunIn = new Set(asked.groups.filter((group) => this.#world.isBegun(answer, group)))
    const others = this.#byId.get(asked.id)!.filter((each) => each !== asked)
    if (answer === asked.id) {
      // One that came or went meanwhile may have been there.
      const isFree = (group: string): boolean =>
        asked.stored.get(group)!.size === 0 && !others.some((each) => each.answeredAt > asked.askedAt)
      this.#mayReplace(asked)
      const isThere = (group: string): boolean => asked.unique.while === 'running' && this.#world.isIn(answer, group)
      return new Set(asked.groups.filter((group) => isFree(group) || isThere(group)))
    }
    const there = others.find(({ id }) => id === answer)
    if (there === undefined) throw new Finding(`${asked.id} was answered with ${answer}, which nobody has published`)
    const mayBeThere = (group: string): boolean =>
      (asked.stored.get(group)!.has(answer) || there.answeredAt > asked.askedAt) &&
      (asked.unique.while === 'running' || !((this.#begun.get(`${answer} ${group}`) ?? this.#moment) < asked.askedAt))
    if (asked.groups.length > 0 && !asked.groups.some(mayBeThere))
      throw new Finding(`${asked.id} was answered with ${answer}, which was not there any more: ${asked.unique.while}`)
    return new Set()
  }

  /** A handler begins. */
  begun(id: string, group: string, payload: string): void {
    const all = this.#byId.get(id)
    const place = `${id} ${group}`
    if (all === undefined || this.#begun.has(place)) return
    const now = ++this.#moment
    this.#begun.set(place, now)
    const given = all.find((each) => each.payload === payload)!
    const newer = all.find(
      (each) =>
        each.answer === id &&
        each.unique.replaces &&
        !each.begunIn.has(group) &&
        each.answeredAt < now &&
        each.askedAt > given.answeredAt,
    )
    if (newer !== undefined)
      throw new Finding(`${id} was begun for ${group} with the payload of ${given.id}, and ${newer.id} had replaced it`)
  }
}
