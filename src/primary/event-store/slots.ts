// The slots this process owns: only the owner reads and changes the rows of a slot.
import type { Queryable } from '../../contracts/db.ts'
import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { arrayOf } from '../../runtime/event-store/server-changes.ts'
import { SLOTS } from '../../runtime/event-store/server-tables.ts'
import type { Group } from './cursor.ts'
import { raiseOfShares } from './share-rows.ts'

/**
 * ```
 *            another member should have it          nothing of it is in hand
 *   held ────────────────────────────────► draining ───────────────────────► released
 *    │                                       │
 *    └──────────────► lost ◄─────────────────┘
 *            another member has taken it, or has removed this one; or a rule was broken here
 * ```
 * After a broken rule the epoch is still this member's: outcomes that were on their way are written, and it takes the slot again with the next epoch.
 * Slots that were taken by a commit without an answer are released or taken anew at the next look. At the end of the process all are released,
 * whatever is in hand.
 * A slot that drains is always released, even if this member should have it again by then: a failed attempt of it may not be noted yet, and it must
 * come before all later rows of its key. It also drains when its group leaves or the process ends. The slot of a broadcast or of temporary subscribers is `released` at once.
 */
export type SlotState = 'held' | 'draining' | 'released' | 'lost'

/** A slot of a group, from when this process takes it until it releases or loses it. */
export interface OwnedSlot {
  readonly group: number
  readonly slot: number
  readonly epoch: number
  state: SlotState
  /** Rows in hand. */
  inHand: number
}

/** A blocked key, as it is stored. */
export interface ParkedInSlot {
  slot: number
  key: string
  deadLetter: string
  place: number
}

interface SlotRow {
  grp: number
  slot: number
  member: number | null
  epoch: number
}

export interface SlotsParts {
  database: () => StoreDatabase
  /** Number of this member. */
  member: () => number
  /** Maximum number of rows of a slot that may have killed its owner, and of them of one key. */
  suspects: number
  suspectsOfKey: number
  /** The first shares of a group. */
  sharesOf: (tx: Queryable, group: number) => Promise<readonly string[]>
  /** Called when slots of a group were taken. @param parked their blocked keys, as they are stored */
  onTaken: (slots: readonly OwnedSlot[], parked: readonly ParkedInSlot[]) => void
  /** Called when nothing more of the slot may begin. */
  onDraining: (slot: OwnedSlot) => void
  /** Called when the slot is released or lost. */
  onGone: (slot: OwnedSlot) => void
  /** Resolves when all outcomes so far are committed. */
  written: () => Promise<void>
  /** Called when other members may take a slot. */
  onReleased: () => void
}

/** Takes free slots. Returns the previous owner: one of the rows may have killed an owner that did not release its slot. */
const TAKE = `WITH free AS (
    SELECT s.grp, s.slot, s.member FROM heddle_slot AS s JOIN unnest($2::int[], $3::int[]) AS w (grp, slot) ON s.grp = w.grp AND s.slot = w.slot
    WHERE s.member IS NULL OR s.member = $1 OR NOT EXISTS (SELECT 1 FROM heddle_member WHERE id = s.member)
    ORDER BY s.grp, s.slot FOR UPDATE OF s)
  UPDATE heddle_slot AS s SET member = $1, epoch = s.epoch + 1 FROM free
  WHERE s.grp = free.grp AND s.slot = free.slot AND EXISTS (SELECT 1 FROM heddle_member WHERE id = $1)
  RETURNING s.grp, s.slot, s.epoch, free.member`
/** Maximum number of rows of a slot searched for rows its owner may have had in hand: behind blocked keys there may be any number. */
const SCANNED_MAX = 16_384
/** Skips rows that cannot have been in hand: rows of blocked keys, and rows far behind others of their keys. */
const SUSPECT = `UPDATE heddle_delivery AS d SET crashes = d.crashes + 1
  FROM unnest($1::int[], $2::int[]) AS t (grp, slot) CROSS JOIN LATERAL (
    SELECT f.seq FROM (SELECT seq, key, coalesce(place, seq) AS place FROM heddle_delivery
        WHERE grp = t.grp AND slot = t.slot AND due_ms = 0 ORDER BY coalesce(place, seq) LIMIT ${SCANNED_MAX}) AS f
      WHERE f.key IS NULL OR (NOT EXISTS (SELECT 1 FROM heddle_parked AS p WHERE p.grp = t.grp AND p.key = f.key)
        AND (SELECT o.seq FROM heddle_delivery AS o WHERE o.grp = t.grp AND o.key = f.key AND o.due_ms = 0 AND coalesce(o.place, o.seq) < f.place
          ORDER BY coalesce(o.place, o.seq) LIMIT 1 OFFSET $4::int) IS NULL)
      ORDER BY f.place LIMIT $3::int) AS first
  WHERE d.seq = first.seq RETURNING d.seq, d.grp`
const PARKED = `SELECT p.grp, p.slot, p.key, p.dead_letter, d.place FROM heddle_parked AS p JOIN heddle_dead AS d ON d.id = p.dead_letter
  JOIN unnest($1::int[], $2::int[]) AS t (grp, slot) ON p.grp = t.grp AND p.slot = t.slot`
/** Slots to release: their TAKE was committed without an answer, and they are assigned elsewhere. */
const RELEASE_UNKNOWN = `UPDATE heddle_slot AS s SET member = NULL FROM unnest($1::int[], $2::int[], $3::bigint[]) AS t (grp, slot, epoch)
  WHERE s.grp = t.grp AND s.slot = t.slot AND s.epoch = t.epoch AND s.member = $4`
const RELEASE = 'UPDATE heddle_slot SET member = NULL WHERE grp = $1 AND slot = $2 AND epoch = $3 AND member = $4'

export class Slots {
  readonly #parts: SlotsParts
  /** By group and slot. */
  readonly #owned = new Map<number, Map<number, OwnedSlot>>()
  /** Shared groups, by id. */
  readonly #shared = new Map<number, Group>()
  /** Lost slots with rows still in hand. */
  readonly #lost = new Set<OwnedSlot>()
  readonly #releasing = new Set<OwnedSlot>()
  #isEnding = false
  /** The members at the last check. */
  #seen = ''
  #mustLook = true

  constructor(parts: SlotsParts) {
    this.#parts = parts
  }

  // ── owned slots ───────────────────────────────────────────────────────────

  /** Returns the slots of a group whose rows may be handed out. */
  readable(group: number): OwnedSlot[] {
    const readable: OwnedSlot[] = []
    for (const owned of this.#owned.get(group)?.values() ?? []) if (owned.state === 'held') readable.push(owned)
    return readable
  }

  owned(group: number, slot: number): OwnedSlot | undefined {
    return this.#owned.get(group)?.get(slot)
  }

  // ── groups ────────────────────────────────────────────────────────────────

  /** Adds a shared group: the next check takes its slots. */
  add(group: Group): void {
    this.#shared.set(group.id, group)
    this.#mustLook = true
  }

  /** Adds a group of this process alone. It has one slot. */
  addOwn({ id }: Group): void {
    this.#set({ group: id, slot: 0, epoch: 1, state: 'held', inHand: 0 })
  }

  /** Removes a group without a subscriber here. */
  remove(group: Group): void {
    const isShared = this.#shared.delete(group.id)
    const slots = [...(this.#owned.get(group.id)?.values() ?? [])]
    if (isShared) for (const owned of slots) this.#drain(owned)
    else for (const owned of slots) this.#gone(owned, 'released')
  }

  /** Drains all slots, because this process ends. */
  end(): void {
    this.#isEnding = true
    for (const slots of this.#owned.values())
      for (const owned of [...slots.values()]) if (this.#shared.has(owned.group)) this.#drain(owned)
  }

  #set(owned: OwnedSlot): void {
    const slots = this.#owned.get(owned.group)
    if (slots === undefined) this.#owned.set(owned.group, new Map([[owned.slot, owned]]))
    else slots.set(owned.slot, owned)
  }

  // ── taking and releasing ──────────────────────────────────────────────────

  expectChange(): void {
    this.#mustLook = true
  }

  /**
   * Takes free slots that are assigned to this member, and drains those assigned to others.
   * @param members the known members
   * @param seen changes when members or their groups change
   */
  async look(members: readonly number[], seen: string): Promise<void> {
    if (this.#shared.size === 0 || (!this.#mustLook && seen === this.#seen)) return
    this.#mustLook = false
    try {
      await this.#look(members)
      this.#seen = seen
    } catch (error) {
      this.#mustLook = true
      throw error
    }
  }

  async #look(members: readonly number[]): Promise<void> {
    const { database, member } = this.#parts
    const me = member()
    const groups = arrayOf([...this.#shared.keys()])
    const having = await database().query<{ grp: number; member: number }>(
      'SELECT grp, member FROM heddle_member_group WHERE grp = ANY($1::int[])',
      [groups],
    )
    const rows = await database().query<SlotRow>(
      'SELECT grp, slot, member, epoch FROM heddle_slot WHERE grp = ANY($1::int[])',
      [groups],
    )
    const assigned = assignments([...this.#shared.keys()], having, members)
    const wanted: SlotRow[] = []
    const unknown: SlotRow[] = []
    let isComplete = true
    for (const row of rows) {
      const [group, slot] = [Number(row.grp), Number(row.slot)]
      const owner = row.member === null ? null : Number(row.member)
      const owned = this.owned(group, slot)
      if (owned !== undefined && !this.#releasing.has(owned) && (owner !== me || Number(row.epoch) !== owned.epoch)) {
        // The rows may be older than later changes of this process.
        if (owned.epoch <= Number(row.epoch)) this.lose(owned)
        isComplete = false
        continue
      }
      const isMine = !this.#isEnding && assigned.get(group)?.[slot] === me
      if (owned === undefined) {
        if (!isMine) {
          if (owner === me) unknown.push(row)
          continue
        }
        isComplete = false
        const isFree = owner === null || owner === me || !members.includes(owner)
        if (isFree && !this.#isUnderWay(group, slot)) wanted.push(row)
      } else if (!isMine) this.#drain(owned)
    }
    if (wanted.length > 0) await this.#take(wanted)
    if (unknown.length > 0) isComplete = (await this.#releaseUnknown(unknown)) && isComplete
    // Others must release some first.
    if (!isComplete) this.#mustLook = true
  }

  /** True while rows of an earlier epoch of the slot are in hand. */
  #isUnderWay(group: number, slot: number): boolean {
    for (const lost of this.#lost) if (lost.group === group && lost.slot === slot) return true
    return false
  }

  /** @returns false if some have deliveries in flight */
  async #releaseUnknown(rows: readonly SlotRow[]): Promise<boolean> {
    const { database, member, onReleased } = this.#parts
    const idle = rows.filter(({ grp, slot }) => !this.#isUnderWay(Number(grp), Number(slot)))
    if (idle.length > 0) {
      const epochs = arrayOf(idle.map(({ epoch }) => Number(epoch)))
      await database().execute(RELEASE_UNKNOWN, [...listsOf(idle), epochs, member()])
      onReleased()
    }
    return idle.length === rows.length
  }

  async #take(rows: readonly SlotRow[]): Promise<void> {
    const { database, member, suspects, suspectsOfKey } = this.#parts
    const me = member()
    const taken = await ownTransaction(database(), async (tx) => {
      const { rows: slots } = await tx.execute<SlotRow>(TAKE, [
        me,
        arrayOf(rows.map(({ grp }) => Number(grp))),
        arrayOf(rows.map(({ slot }) => Number(slot))),
      ])
      const crashed = slots.filter((row) => row.member !== null && Number(row.member) !== me)
      if (crashed.length === 0) return slots
      const { rows: counted } = await tx.execute<{ seq: number; grp: number }>(SUSPECT, [
        ...listsOf(crashed),
        suspects,
        suspectsOfKey - 1,
      ])
      for (const group of new Set(crashed.map(({ grp }) => Number(grp)))) {
        const of = <T extends { grp: number }>(rows: readonly T[]) => rows.filter(({ grp }) => Number(grp) === group)
        const seqs = of(counted).map(({ seq }) => Number(seq))
        const numbers = of(crashed).map(({ slot }) => Number(slot))
        await raiseOfShares(tx, 'postgres', group, await this.#parts.sharesOf(tx, group), seqs, suspects, numbers)
      }
      return slots
    })
    const owned = taken.map(
      ({ grp, slot, epoch }): OwnedSlot => ({
        group: Number(grp),
        slot: Number(slot),
        epoch: Number(epoch),
        state: 'held',
        inHand: 0,
      }),
    )
    await this.#open(owned)
  }

  /** Starts reading the rows of the slots, except rows of blocked keys. */
  async #open(slots: readonly OwnedSlot[]): Promise<void> {
    if (slots.length === 0) return
    const lists = [arrayOf(slots.map(({ group }) => group)), arrayOf(slots.map(({ slot }) => slot))]
    const parked = await this.#parts
      .database()
      .query<{ grp: number; slot: number; key: string; dead_letter: string; place: number }>(PARKED, lists)
    for (const group of new Set(slots.map((each) => each.group))) {
      const its = slots.filter((each) => each.group === group)
      for (const owned of its) this.#set(owned)
      const keys = parked.filter(({ grp }) => Number(grp) === group)
      if (this.#shared.has(group))
        this.#parts.onTaken(
          its,
          keys.map(({ slot, key, dead_letter, place }) => ({
            slot: Number(slot),
            key,
            deadLetter: dead_letter,
            place: Number(place),
          })),
        )
      // The group was removed meanwhile, or this process ends.
      if (!this.#shared.has(group) || this.#isEnding) for (const owned of its) this.#drain(owned)
    }
  }

  #drain(owned: OwnedSlot): void {
    if (owned.state !== 'held') return
    owned.state = 'draining'
    this.#parts.onDraining(owned)
    this.#releaseIfEmpty(owned)
  }

  /** Called when a row of the slot has left the hand. */
  rowLeft(owned: OwnedSlot): void {
    owned.inHand--
    if (owned.inHand > 0) return
    if (this.#lost.delete(owned)) this.#mustLook = true
    this.#releaseIfEmpty(owned)
  }

  #releaseIfEmpty(owned: OwnedSlot): void {
    if (owned.state !== 'draining' || owned.inHand > 0 || this.#releasing.has(owned)) return
    this.#releasing.add(owned)
    void this.#release(owned)
  }

  async #release(owned: OwnedSlot): Promise<void> {
    const { database, member, written, onReleased } = this.#parts
    const { group, slot, epoch } = owned
    try {
      await written()
      if (owned.state === 'draining') {
        await database().execute(RELEASE, [group, slot, epoch, member()])
        this.#gone(owned, 'released')
        onReleased()
      }
    } catch {
      // The next check sees whether it is released, and tries again.
    }
    this.#releasing.delete(owned)
    this.#mustLook = true
  }

  /** Tries again to release slots, after a failure. */
  retryReleases(): void {
    for (const slots of this.#owned.values()) for (const owned of [...slots.values()]) this.#releaseIfEmpty(owned)
  }

  /** Gives up a slot taken by another member. */
  lose(owned: OwnedSlot): void {
    if (owned.state === 'lost' || owned.state === 'released') return
    if (owned.inHand > 0) this.#lost.add(owned)
    this.#gone(owned, 'lost')
  }

  #gone(owned: OwnedSlot, state: 'released' | 'lost'): void {
    owned.state = state
    const slots = this.#owned.get(owned.group)
    if (slots?.get(owned.slot) === owned) slots.delete(owned.slot)
    if (slots?.size === 0) this.#owned.delete(owned.group)
    this.#mustLook = true
    this.#parts.onGone(owned)
  }

  /** Gives up all slots, because others have removed this member. */
  loseAll(): void {
    for (const slots of [...this.#owned.values()]) for (const owned of [...slots.values()]) this.lose(owned)
    this.#mustLook = true
  }
}

const listsOf = (rows: readonly SlotRow[]): [string, string] => [
  arrayOf(rows.map(({ grp }) => Number(grp))),
  arrayOf(rows.map(({ slot }) => Number(slot))),
]

/**
 * Assigns the slots of some groups to members: rendezvous hashing, with no more than its share for each member.
 * Source: V. Mirrokni, M. Thorup and M. Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018.
 */
export function assignments(
  groups: readonly number[],
  having: readonly { grp: number; member: number }[],
  members: readonly number[],
): Map<number, number[]> {
  const known = new Set(members)
  const byGroup = new Map<number, number[]>(groups.map((group) => [group, []]))
  for (const { grp, member } of having) if (known.has(Number(member))) byGroup.get(Number(grp))?.push(Number(member))
  return new Map(
    [...byGroup].map(([group, its]) => [
      group,
      assignmentOf(
        group,
        its.sort((a, b) => a - b),
      ),
    ]),
  )
}

function assignmentOf(group: number, members: readonly number[]): number[] {
  if (members.length === 0) return []
  const most = Math.ceil(SLOTS / members.length)
  const counts = new Map(members.map((member) => [member, 0]))
  return Array.from({ length: SLOTS }, (_, slot) => {
    let best = -1
    let bestScore = -1
    for (const member of members) {
      const score = mixed(mixed(member) ^ mixed(group * SLOTS + slot))
      if (counts.get(member)! >= most || score <= bestScore) continue
      best = member
      bestScore = score
    }
    counts.set(best, counts.get(best)! + 1)
    return best
  })
}

/** Source: the finalizer of A. Appleby's MurmurHash3. */
function mixed(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
