import type { DeadLetter, EventRecord } from '../../src/contracts/event-bus.ts'
import { type Acknowledged, isAcknowledged, type Write } from '../support/ledger.ts'

export interface StoredUser {
  readonly id: string
  readonly email: string
  readonly welcomed_at: string | null
}

/** What the service has left behind. */
export interface Evidence {
  readonly users: readonly StoredUser[]
  /** Ids of the events whose subscriber wrote down that it had handled them. */
  readonly handled: ReadonlySet<string>
  /** Numbers that were written in transactions whose lane died before they ended. */
  readonly torn: readonly number[]
  readonly deadLetters: readonly DeadLetter[]
  /** Every event record that was seen. */
  readonly records: readonly EventRecord[]
}

/** One promise that was not kept. */
export interface Finding {
  readonly what: 'write' | 'event' | 'tree'
  /** Of the user, the row, the event or the request. */
  readonly id: string
  readonly problem: string
}

export interface Verdict {
  readonly users: { acknowledged: number; lost: number; unacknowledged: number; thereAllTheSame: number }
  readonly events: {
    /** With an id that a client was told. */
    acknowledged: number
    /** Taken by the hub, children and those whose publisher's answer was lost included. */
    accepted: number
    handled: number
    handledMoreThanOnce: number
    deadLetters: number
    /** Dead letters of events that were not meant to become any: suspects of a lane's death. */
    innocentDeadLetters: number
    lost: number
  }
  readonly trees: { whole: number; broken: number }
  readonly findings: readonly Finding[]
}

/** Events that somebody handles, and the child that each handling publishes. */
const CHILD_OF: Readonly<Record<string, string | null>> = {
  'user.created': 'welcome.sent',
  'chaos.counted': 'chaos.noted',
  'chaos.noted': null,
  'chaos.poisoned': null,
}
const ROOT_OF: Readonly<Record<Write['subject'], string>> = {
  user: 'user.created',
  count: 'chaos.counted',
  poison: 'chaos.poisoned',
}

/** Holds what was promised against what is there. Writes without an acknowledgement may or may not be there. */
export function judge(writes: readonly Write[], evidence: Evidence): Verdict {
  const judged = new Judgement(writes, evidence)
  const users = judged.users()
  const events = judged.events()
  const trees = judged.trees()
  return { users, events, trees, findings: judged.findings }
}

class Judgement {
  readonly findings: Finding[] = []
  readonly #writes: readonly Write[]
  readonly #evidence: Evidence
  readonly #records = new Map<string, EventRecord>()
  readonly #children = new Map<string, EventRecord[]>()
  readonly #rootOfRequest = new Map<string, EventRecord>()
  readonly #writeOfRequest = new Map<string, Write>()
  readonly #userOfEmail = new Map<string, StoredUser>()
  readonly #dead = new Set<string>()

  constructor(writes: readonly Write[], evidence: Evidence) {
    this.#writes = writes
    this.#evidence = evidence
    for (const write of writes) this.#writeOfRequest.set(write.requestId, write)
    for (const user of evidence.users) this.#userOfEmail.set(user.email, user)
    for (const letter of evidence.deadLetters) this.#dead.add(letter.event_id)
    for (const record of evidence.records) {
      this.#records.set(record.id, record)
      if (record.parent_id === null) {
        if (record.request_id !== null) this.#rootOfRequest.set(record.request_id, record)
        continue
      }
      const siblings = this.#children.get(record.parent_id)
      if (siblings === undefined) this.#children.set(record.parent_id, [record])
      else siblings.push(record)
    }
  }

  users(): Verdict['users'] {
    const users = this.#writes.filter(({ subject }) => subject === 'user')
    const acknowledged = users.filter(isAcknowledged)
    const lost = acknowledged.filter(({ key, id }) => this.#userOfEmail.get(key)?.id !== id)
    for (const { id, requestId } of lost)
      this.#find('write', id, `user of the acknowledged request ${requestId} is not in the database`)
    for (const number of this.#evidence.torn)
      this.#find('write', String(number), 'row of a transaction that never ended is in the database')
    const unacknowledged = users.filter((write) => !isAcknowledged(write))
    return {
      acknowledged: acknowledged.length,
      lost: lost.length,
      unacknowledged: unacknowledged.length,
      thereAllTheSame: unacknowledged.filter(({ key }) => this.#userOfEmail.has(key)).length,
    }
  }

  events(): Verdict['events'] {
    const acknowledged = this.#writes.filter(isAcknowledged).filter(({ subject }) => subject !== 'user')
    const accepted = new Set(acknowledged.map(({ id }) => id))
    for (const { id, event } of this.#records.values()) if (event in CHILD_OF) accepted.add(id)
    const events = {
      acknowledged: acknowledged.length,
      accepted: accepted.size,
      handled: 0,
      handledMoreThanOnce: 0,
      deadLetters: 0,
      innocentDeadLetters: 0,
      lost: 0,
    }
    const courseOf = new Map(acknowledged.map(({ id, course }) => [id, course]))
    for (const id of accepted) {
      const record = this.#records.get(id)
      const course = courseOf.get(id) ?? this.#courseOf(record)
      const isDead = this.#dead.has(id)
      const isHandled = this.#isHandled(id, record)
      if (isHandled) events.handled++
      if (record !== undefined && this.#childrenAsWanted(record).length > 1) events.handledMoreThanOnce++
      if (isDead) events.deadLetters++
      const isMeantToDie = course === 'fails' || record?.event === 'chaos.poisoned' || course === 'poison'
      if (isDead && !isMeantToDie) events.innocentDeadLetters++
      if (isDead || (isHandled && !isMeantToDie)) continue
      events.lost++
      const name = record?.event ?? 'acknowledged event'
      const end = isHandled
        ? 'was handled and should have become a dead letter'
        : 'is neither handled nor a dead letter'
      this.#find('event', id, `${name} ${course} ${end}`)
    }
    return events
  }

  trees(): Verdict['trees'] {
    const roots = new Set<string>()
    const broken = new Set<string>()
    const breaks = (root: string, id: string, problem: string): void => {
      broken.add(root)
      this.#find('tree', id, problem)
    }
    for (const record of this.#records.values()) {
      const root = this.#rootOf(record)
      roots.add(root)
      const { id, event, parent_id, request_id } = record
      const parent = parent_id === null ? undefined : this.#records.get(parent_id)
      if (parent_id !== null && parent === undefined)
        breaks(root, id, `${event} has a parent ${parent_id} that nobody saw`)
      if (parent !== undefined && parent.request_id !== request_id)
        breaks(root, id, `${event} is of request ${request_id}, its parent ${parent.event} of ${parent.request_id}`)
      const wanted = CHILD_OF[event]
      if (wanted && !this.#dead.has(id) && this.#isHandled(id, record) && this.#childrenAsWanted(record).length === 0)
        breaks(root, id, `${event} was handled and has no child ${wanted}`)
      if (this.#dead.has(id) && !this.#childrenOf(id).some((child) => child.event === 'event.delivery.failed'))
        breaks(root, id, `${event} is a dead letter and has no child event.delivery.failed`)
    }
    for (const write of this.#writes.filter(isAcknowledged)) {
      const problem = this.#rootProblem(write)
      if (problem === null) continue
      const root = this.#rootOfRequest.get(write.requestId)?.id ?? write.requestId
      roots.add(root)
      breaks(root, write.requestId, problem)
    }
    return { whole: roots.size - broken.size, broken: broken.size }
  }

  #rootProblem({ subject, id, requestId }: Acknowledged): string | null {
    const root = this.#rootOfRequest.get(requestId)
    if (root === undefined) return `acknowledged ${subject} has no root with the id of its request`
    if (root.event !== ROOT_OF[subject]) return `acknowledged ${subject} has the root ${root.event}`
    if (subject !== 'user' && root.id !== id) return `acknowledged event ${id} has the root ${root.id}`
    return null
  }

  #isHandled(id: string, record: EventRecord | undefined): boolean {
    if (record?.event !== 'user.created') return this.#evidence.handled.has(id)
    // The event follows the row: whoever is not there was not published.
    const write = record.request_id === null ? undefined : this.#writeOfRequest.get(record.request_id)
    return write !== undefined && (this.#userOfEmail.get(write.key)?.welcomed_at ?? null) !== null
  }

  #courseOf(record: EventRecord | undefined): string {
    if (record?.event !== 'chaos.counted' || record.request_id === null) return ''
    return this.#writeOfRequest.get(record.request_id)?.course ?? ''
  }

  #childrenOf(id: string): readonly EventRecord[] {
    return this.#children.get(id) ?? []
  }

  #childrenAsWanted({ id, event }: EventRecord): EventRecord[] {
    return this.#childrenOf(id).filter((child) => child.event === CHILD_OF[event])
  }

  /** The id of the record's root, or of its ancestor that nobody saw. */
  #rootOf(record: EventRecord): string {
    let at = record
    for (;;) {
      if (at.parent_id === null) return at.id
      const parent = this.#records.get(at.parent_id)
      if (parent === undefined) return at.parent_id
      at = parent
    }
  }

  #find(what: Finding['what'], id: string, problem: string): void {
    this.findings.push({ what, id, problem })
  }
}
