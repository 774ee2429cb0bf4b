// Lists the dead letters of Redis and of the database together.
import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { DeadLetterCollector, type DeadLetters } from '../events/dead-letters.ts'
import type { StreamDeadLetters } from './dead-letters.ts'

const IN_REDIS = /^dl_(\d{1,15})-\d{1,15}$/
/** A UUID of version 7 begins with the time: 12 hexadecimal digits. */
const IN_DATABASE = /^dl_([0-9a-f]{12})[0-9a-f]{20}$/

/** Time of a dead letter by its id, milliseconds since the epoch; null for an id of no store. */
function atMsOf(id: string): number | null {
  const inRedis = IN_REDIS.exec(id)
  if (inRedis !== null) return Number(inRedis[1])
  const inDatabase = IN_DATABASE.exec(id)
  return inDatabase === null ? null : Number.parseInt(inDatabase[1]!, 16)
}

/** Lists the dead letters of both stores by time. Within a millisecond, Redis comes first. */
export class CombinedDeadLetters implements DeadLetters {
  readonly #inRedis: StreamDeadLetters
  readonly #inDatabase: DeadLetters

  constructor(inRedis: StreamDeadLetters, inDatabase: DeadLetters) {
    this.#inRedis = inRedis
    this.#inDatabase = inDatabase
  }

  async list(wanted: DeadLetterPage = {}): Promise<DeadLetter[]> {
    const [redis, database] = await Promise.all([
      pageOf(this.#inRedis, { ...wanted, ...beforeInRedis(wanted.before) }),
      pageOf(this.#inDatabase, { ...wanted, ...beforeInDatabase(wanted.before) }),
    ])
    const newestFirst = [...database.deadLetters.reverse(), ...redis.deadLetters.reverse()]
    newestFirst.sort((a, b) => (atMsOf(b.id) ?? 0) - (atMsOf(a.id) ?? 0))
    const page = new DeadLetterCollector(wanted)
    for (const deadLetter of newestFirst)
      if (page.add([deadLetter]) || deadLetter.id === redis.goesOnAfter || deadLetter.id === database.goesOnAfter) break
    return page.oldestFirst()
  }

  #of(id: string): Pick<DeadLetters, 'payload' | 'replay' | 'delete'> {
    return IN_REDIS.test(id) ? this.#inRedis : this.#inDatabase
  }

  async payload(id: string): Promise<string | null> {
    return this.#of(id).payload(id)
  }

  async replay(id: string): Promise<boolean> {
    return this.#of(id).replay(id)
  }

  async delete(id: string): Promise<boolean> {
    return this.#of(id).delete(id)
  }

  /** @throws EVENT_OPTIONS_INVALID for a dead letter in Redis */
  async edit(id: string, json: string, keys: string): Promise<boolean> {
    if (!IN_REDIS.test(id)) return this.#inDatabase.edit(id, json, keys)
    throw new HeddleError(
      'EVENT_OPTIONS_INVALID',
      `The dead letter ${id} is in Redis and cannot be edited: publish the event again and delete the dead letter`,
    )
  }
}

/** A page of one store. `goesOnAfter`: its oldest dead letter, if the store has older ones. */
async function pageOf(store: Pick<DeadLetters, 'list'>, wanted: DeadLetterPage) {
  const deadLetters = await store.list(wanted)
  const [oldest] = deadLetters
  if (oldest === undefined) return { deadLetters, goesOnAfter: null }
  const [older] = await store.list({ ...wanted, before: oldest.id, limit: 1 })
  return { deadLetters, goesOnAfter: older === undefined ? null : oldest.id }
}

/** The cursor in Redis for a dead letter of the database. */
function beforeInRedis(before: string | undefined): DeadLetterPage {
  if (before === undefined || IN_REDIS.test(before)) return {}
  const atMs = atMsOf(before)
  return atMs === null ? {} : { before: `dl_${atMs + 1}-0` }
}

function beforeInDatabase(before: string | undefined): DeadLetterPage {
  if (before === undefined || !IN_REDIS.test(before)) return {}
  return { before: `dl_${atMsOf(before)!.toString(16).padStart(12, '0')}` }
}
