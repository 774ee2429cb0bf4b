// Reads the rows of a group whose shares take turns.
import type { Awaitable } from '../../contracts/common.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import { keyColumnOf } from '../../runtime/event-store/event-columns.ts'
import type { Cursor, Group } from './cursor.ts'
import { type DeliveryStore, isMalformed, type MalformedRow, type Page, type StoredDelivery } from './store.ts'
import { PASS_EVERY_MS, SHARES_MAX, type ShareAsk, type Turns } from './turns.ts'

/** The reader, as this part of it needs it. */
export interface ShareReaderParts {
  store: DeliveryStore
  clock: Clock
  pageRows: number
  /** How many rows of a share may be in the hub. */
  roomOfShare: (group: Group, share: string) => number
  /** True for a row processes may have died of. */
  isSuspect: (row: StoredDelivery) => boolean
  onMalformed: (row: MalformedRow) => void
  /** Reads a page whose rows are then given. */
  read: (page: () => Awaitable<Page>) => Promise<Page>
  /** False once the group has left, or reading has ended. */
  isReading: (cursor: Cursor) => boolean
  /** True for a row in hand. */
  isTaken: (row: Page[number]) => boolean
  hasRoom: (cursor: Cursor, row: StoredDelivery) => boolean
  give: (cursor: Cursor, row: StoredDelivery) => void
  /** Number of rows given and not ended. */
  given: () => number
  /** Some of its rows may be read. */
  ready: (cursor: Cursor) => void
  /** Runs a suspect alone. */
  tryAlone: (cursor: Cursor, row: StoredDelivery) => void
}

/** True while the shares of its rows take turns, and their order is not that of the group. */
export function isByTurns(cursor: Cursor): cursor is Cursor & { turns: Turns } {
  return cursor.turns !== null && !cursor.turns.isInOrder
}

export class ShareReader {
  readonly #parts: ShareReaderParts

  constructor(parts: ShareReaderParts) {
    this.#parts = parts
  }

  /** One turn of some shares. @returns the number of rows given */
  async read(cursor: Cursor, turns: Turns, room: number): Promise<number> {
    const { store, roomOfShare, given, read, tryAlone } = this.#parts
    const { group } = cursor
    const before = given()
    const roomOf = (share: string): number => roomOfShare(group, share)
    await this.#readKeys(cursor, turns, (share) => Math.min(room, roomOf(share)) - turns.inHubOf(share))
    if (cursor.state !== 'behind') return given() - before
    const isRound = turns.isRoundNext
    if (isRound) turns.turns()
    const { shares, after } = isRound
      ? { shares: await store.nextShares(group.id, turns.after, SHARES_MAX), after: undefined }
      : turns.takeNamed()
    const pageRows = Math.min(room, this.#parts.pageRows)
    const { after: decided } = cursor
    const { forgotten } = turns
    const asks = turns.asks(shares, room, pageRows, roomOf, this.#parts.clock.steadyMs(), after)
    const page = asks.length === 0 ? [] : await read(() => store.readShares(group.id, asks))
    const beforePage = given()
    const { unread, suspect, buried } = this.#takeShared(cursor, page)
    if (page.length > 0) turns.leftOut()
    if (isRound) turns.turned(shares, unread, given() - beforePage + buried)
    else for (const share of unread) turns.mayGoOn(share)
    if (suspect !== null) tryAlone(cursor, suspect)
    const found = new Set(page.map((row) => (isMalformed(row) ? '' : row.event.shares)))
    if (suspect === null)
      for (const ask of asks)
        if (!found.has(ask.share))
          await this.#pass(cursor, turns, ask, () => (forgotten === turns.forgotten ? decided : 0))
    return given() - before
  }

  /** None of the rows that were looked at may be read: those behind may. @param decided see `Turns.passed` */
  async #pass(cursor: Cursor, turns: Turns, ask: ShareAsk, decided: () => number): Promise<void> {
    const { store, clock } = this.#parts
    const { share } = ask
    // Nothing was read in order yet: it is not known up to where all rows were there.
    if (decided() === 0 && !turns.isUnsharedRead) {
      turns.leftOut()
      return turns.mayGoOn(share)
    }
    if (!turns.mayPass(share, clock.steadyMs())) {
      if (turns.passesLater.size === 0) this.#passLater(cursor, turns)
      turns.passesLater.add(share)
      return
    }
    const upTo = await store.passShare(cursor.group.id, ask)
    turns.passed(ask, upTo, decided(), clock.steadyMs())
  }

  #passLater(cursor: Cursor, turns: Turns): void {
    const timer = this.#parts.clock.after(PASS_EVERY_MS, () => {
      for (const share of turns.passesLater) turns.mayGoOn(share)
      turns.passesLater.clear()
      this.#parts.ready(cursor)
    })
    timer.unref()
  }

  /** Rows of some keys have settled: the next ones may be read, whatever their shares. */
  async #readKeys(cursor: Cursor, turns: Turns, roomOf: (share: string) => number): Promise<void> {
    const { store, read, tryAlone } = this.#parts
    const { id } = cursor.group
    const keys = turns.takeKeys()
    if (keys.length === 0) return
    const left = new Set(keys)
    try {
      for (const { key, share } of await store.sharesOfKeys(id, keys)) {
        // It is asked for when there is room.
        if (share !== '' && roomOf(share) <= 0) {
          turns.leftOut()
          turns.forgetVain(share)
          turns.mayGoOn(share)
        } else if (cursor.state !== 'behind') turns.keyMayGoOn(key)
        else {
          const page = await read(() => store.readKey(id, keyColumnOf(key)!, 0, 1))
          const { unread, suspect } = this.#takeShared(cursor, page)
          if (unread.size > 0) turns.keyMayGoOn(key)
          if (suspect !== null) tryAlone(cursor, suspect)
        }
        left.delete(key)
      }
    } catch (error) {
      for (const key of left) turns.keyMayGoOn(key)
      throw error
    }
  }

  /** @returns the shares of rows that were not taken, a row that runs alone, if one is next, and the number of malformed rows */
  #takeShared(cursor: Cursor, page: Page): { unread: Set<string>; suspect: StoredDelivery | null; buried: number } {
    const { isReading, isTaken, isSuspect, hasRoom, give, onMalformed } = this.#parts
    const unread = new Set<string>()
    let buried = 0
    for (const row of page) {
      if (!isReading(cursor)) {
        unread.add(isMalformed(row) ? '' : row.event.shares)
        continue
      }
      if (isTaken(row)) continue
      if (isMalformed(row)) {
        onMalformed(row)
        buried++
        continue
      }
      const { key, shares } = row.event
      if (row.waits === true || (key !== null && cursor.keys.get(key)?.state === 'parked')) continue
      if (key !== null && (cursor.keys.get(key)?.inHand ?? 0) > 0) continue
      if (isSuspect(row)) {
        // Else the many suspects of one share would go before all others.
        for (const other of page)
          if (!isMalformed(other) && other.event.shares !== shares) unread.add(other.event.shares)
        return { unread, suspect: row, buried }
      }
      if (hasRoom(cursor, row)) give(cursor, row)
      else {
        cursor.state = 'full'
        unread.add(shares)
      }
    }
    return { unread, suspect: null, buried }
  }
}
