import { SLOT, SLOTS } from '../../runtime/event-log/key-slot.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { NO_PROCESS, WAITS_FOR_GROUP } from '../../runtime/event-log/ownership.ts'

/** Rows that are changed in one statement. */
const PAGE = 1000

interface SlotRow {
  slot: number
  holder: number
  heir: number
}

/**
 * The slots of ordering keys that this process holds: it alone delivers the events of their keys. A slot is held for as long as the process is
 * known. When another process is to have it, it is handed over as soon as nothing of it is in hand here.
 */
export class KeySlots {
  readonly #database: () => LogDatabase
  readonly #epoch: () => number
  #held: ReadonlySet<number> = new Set()
  #leaving: ReadonlySet<number> = new Set()

  /** @param epoch number of this process */
  constructor(database: () => LogDatabase, epoch: () => number) {
    this.#database = database
    this.#epoch = epoch
  }

  /** Those that are to be handed over: nothing more of them is taken. */
  get leaving(): ReadonlySet<number> {
    return this.#leaving
  }

  get hasAll(): boolean {
    return this.#held.size === SLOTS
  }

  /** Takes all slots, if nothing of other processes is there. @returns false otherwise */
  async takeAll(): Promise<boolean> {
    const { rowCount } = await this.#database().execute(
      `UPDATE heddle_slot SET holder = $1, heir = 0 WHERE NOT EXISTS (SELECT 1 FROM heddle_process WHERE epoch <> $1)
         AND NOT EXISTS (SELECT 1 FROM heddle_event WHERE owner NOT IN ($1, ${WAITS_FOR_GROUP}))`,
      [this.#epoch()],
    )
    if (rowCount === SLOTS) this.#held = new Set(Array.from({ length: SLOTS }, (_, slot) => slot))
    return rowCount === SLOTS
  }

  /**
   * Takes the slots that are free and its own by rights, and begins to leave those that others should have.
   * @param members numbers of the processes that deliver events
   * @returns true when there are new ones
   */
  async look(members: readonly number[]): Promise<boolean> {
    const me = this.#epoch()
    const rows = await this.#database().query<SlotRow>('SELECT slot, holder, heir FROM heddle_slot')
    const isMine = ({ slot }: SlotRow): boolean => heirOf(Number(slot), members) === me
    const own = rows.filter(({ holder }) => Number(holder) === me)
    const before = this.#held
    await this.#take(rows.filter((row) => Number(row.holder) !== me && isMine(row)))
    await this.#leave(
      own.filter((row) => Number(row.heir) === 0 && !isMine(row)),
      members,
    )
    await this.#learn()
    return [...this.#held].some((slot) => !before.has(slot))
  }

  async #take(rows: readonly SlotRow[]): Promise<void> {
    if (rows.length === 0) return
    await this.#database().execute(
      `UPDATE heddle_slot SET holder = $1, heir = 0 WHERE ${among(rows)}
         AND NOT EXISTS (SELECT 1 FROM heddle_process WHERE epoch = holder)
         AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)`,
      [this.#epoch()],
    )
  }

  async #leave(rows: readonly SlotRow[], members: readonly number[]): Promise<void> {
    for (const member of members) {
      const its = rows.filter(({ slot }) => heirOf(Number(slot), members) === member)
      if (its.length === 0) continue
      await this.#database().execute(`UPDATE heddle_slot SET heir = $1 WHERE ${among(its)} AND holder = $2`, [
        member,
        this.#epoch(),
      ])
    }
  }

  async #learn(): Promise<void> {
    const rows = await this.#database().query<SlotRow>('SELECT slot, holder, heir FROM heddle_slot WHERE holder = $1', [
      this.#epoch(),
    ])
    const slotsOf = (isLeaving: boolean): Set<number> =>
      new Set(rows.flatMap(({ slot, heir }) => ((Number(heir) !== 0) === isLeaving ? [Number(slot)] : [])))
    this.#held = slotsOf(false)
    this.#leaving = slotsOf(true)
  }

  /** Nothing of the slots that it leaves is in hand any more. @returns positions of the events that it had: they are their heirs' */
  async handOver(): Promise<number[]> {
    const slots = [...this.#leaving].join(', ')
    const freed = await this.#database().query<{ seq: number }>(
      `WITH freed AS (UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND key IS NOT NULL AND ${SLOT} IN (${slots}) RETURNING seq),
       left_slots AS (UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = $1 AND slot IN (${slots}) RETURNING slot)
       SELECT seq FROM freed`,
      [this.#epoch()],
    )
    this.#leaving = new Set()
    return freed.map(({ seq }) => Number(seq))
  }
}

const among = (rows: readonly SlotRow[]): string => `slot IN (${rows.map(({ slot }) => Number(slot)).join(', ')})`

/** The process that is to have a slot: when one comes or goes, only its own slots change hands. */
function heirOf(slot: number, members: readonly number[]): number {
  let best = 0
  let bestRank = -1
  for (const member of members) {
    const rank = mixed(member * SLOTS + slot)
    if (rank > bestRank) [best, bestRank] = [member, rank]
  }
  return best
}

/** An integer that has little to do with the one that is given: the last steps of MurmurHash3. */
function mixed(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * The events with keys that an ended process had, and its slots, are there for others.
 * @param isClean it has ended in order
 * @returns how many events that are
 */
export async function freeKeyed(database: LogDatabase, epoch: number, isClean: boolean): Promise<number> {
  let count = 0
  for (let from = 0; ; ) {
    const { rows } = await database.execute<{ seq: number }>(
      `UPDATE heddle_event SET owner = ${NO_PROCESS}, recovered = recovered + $3::int WHERE owner = $1 AND seq IN
         (SELECT seq FROM heddle_event WHERE owner = $1 AND key IS NOT NULL AND seq > $2 ORDER BY seq LIMIT ${PAGE}) RETURNING seq`,
      [epoch, from, isClean ? 0 : 1],
    )
    count += rows.length
    if (rows.length === 0) break
    from = Math.max(...rows.map(({ seq }) => Number(seq)))
  }
  await database.execute('UPDATE heddle_slot SET holder = heir, heir = 0 WHERE holder = $1', [epoch])
  return count
}
