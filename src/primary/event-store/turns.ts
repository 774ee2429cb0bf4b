// Whose turn it is: the shares of a group whose rows are read in turns.

/** Shares of one priority that have a turn in one page. */
export const SHARES_MAX = 32
/** By its place among so many pages of its kind: the priority that a page begins with. The others begin with the highest. */
const FIRST_PRIORITIES = new Map([
  [0, [2, 1, 0]],
  [4, [1, 0, 2]],
])
const PAGES = 8
/** Priorities of shares, the first one is the highest: the first character of the share. */
export const PRIORITIES = ['0', '1', '2'] as const

/** The first rows of a share that are wanted. */
export interface ShareAsk {
  readonly share: string
  readonly limit: number
  /** Behind this place. */
  readonly after: number
  /** Without these. */
  readonly inHand: readonly number[]
}

/** All rows of a share are looked at as often, milliseconds, if none of the first may be read. */
export const PASS_EVERY_MS = 1000

/** So long it is remembered: another process may have deleted a row that others of its key were behind, milliseconds. */
const VAIN_MS = 60_000
/** Shares of which it is remembered: with more all are looked at again. */
const VAIN_MAX = 10_000

/** Rows of a share that this process has. */
interface InHand {
  /** In the hub. */
  inHub: number
  /** In the hub, or ended and not committed: they are in the table. */
  readonly rows: Set<number>
}

/** Reading in order may go on while at most so many rows with keys are in hand: each of these keys is read from there. */
const KEYS_MAX = 32

/**
 * ```
 *            a share has no room            rows may have come
 *   inOrder ────────────────────► due ◄──────────────────────────────────────┐
 *      ▲                           │ ▲                                        │
 *      │                           ▼ │  something was read                    │
 *      │                         turning ──► read   each share has had a turn, and nothing was read
 *      └──────────────────────────────────────┘     and all rows are in hand
 * ```
 * In order costs least, and as long as the hub takes all rows, it knows best whose turn it is. In each other state shares whose rows have ended, or whose
 * limit lets them go on, are asked for by name; while a round goes on, in every other page, or who is not known by name would wait for as long as others
 * have rows.
 *
 * Each share may have as many rows in the hub as the group has room for: one alone has half of it, ten have an eleventh each, and the last eleventh is free
 * for those that come. See `Reader` for the source of this rule.
 */
export class Turns {
  state: 'inOrder' | 'due' | 'turning' | 'read' = 'inOrder'
  /** Rows without a share, which are older, have been read since there was news. */
  isUnsharedRead = false
  /** This round has found no row, and left none out but those behind others of their keys. Rows without a share had been read before. */
  #isWhole = false
  /** By priority: the last share that had a turn. */
  readonly after: string[] = ['', '', '']
  /** Shares that may go on, each behind a place; 0: from its first row. */
  readonly #named = new Map<string, number>()
  /** Keys whose next rows may be read, whatever their shares. */
  readonly #keys = new Set<string>()
  readonly #hasTurned = [false, false, false]
  /** By priority: since there was news, the first share has had its turn. A round that was under way began behind it. */
  readonly #hasBegun = [false, false, false]
  readonly #shares = new Map<string, InHand>()
  /** Rows in hand that have keys. */
  readonly #keyed = new Map<number, string>()
  /** When all rows of a share were looked at in vain, by the steady clock. */
  readonly #inVain = new Map<string, number>()
  /**
   * By share: none of its rows up to a place may be read, as was seen at a time by the steady clock. What is next of a key is read by the key, and what
   * comes back is told.
   */
  readonly #vain = new Map<string, { upTo: number; atMs: number }>()
  /** Shares whose rows are being looked at, one window after another. */
  readonly #passing = new Set<string>()
  /** How often some were forgotten: what was read before does not say so of them. */
  #forgotten = 0
  /** Shares whose rows are looked at again later. */
  readonly passesLater = new Set<string>()
  /** Pages of rounds, and of shares that were known by name. */
  readonly #pages = [0, 0]
  /** The last page was for shares that were known by name. */
  #wereNamed = false

  get isInOrder(): boolean {
    return this.state === 'inOrder'
  }

  /** True if there is nothing to read. */
  get isRead(): boolean {
    return this.state === 'read' && !this.#areNamed
  }

  /** A share has no room: from now on they take turns. */
  begin(): void {
    if (!this.isInOrder) return
    this.state = 'due'
    this.isUnsharedRead = false
    this.after.fill('')
  }

  /** If the last round has read all rows, the next ones are read in order. @returns the keys of which more may wait; null: it has not */
  end(): Iterable<string> | null {
    if (this.state !== 'read' || !this.#isWhole || this.passesLater.size > 0) return null
    if (this.#keyed.size + this.#keys.size > KEYS_MAX) return null
    this.state = 'inOrder'
    const keys = new Set([...this.#keys, ...this.#keyed.values()])
    this.#keys.clear()
    this.#named.clear()
    this.#inVain.clear()
    this.#passing.clear()
    this.forgetVain()
    return keys
  }

  get #areNamed(): boolean {
    return this.#named.size > 0 || this.#keys.size > 0
  }

  /** True if the next page is one of a round; false if it is for shares that are known by name. */
  get isRoundNext(): boolean {
    return !this.#areNamed || (this.state !== 'read' && this.#wereNamed)
  }

  /** Rows may have come. */
  news(): void {
    this.isUnsharedRead = false
    this.#isWhole = false
    if (!this.isInOrder) this.state = 'due'
  }

  /** A share may go on. */
  mayGoOn(share: string): void {
    if (!this.isInOrder) this.#named.set(share, 0)
  }

  /** Rows that were looked at in vain may be read. @param share default: of all shares */
  forgetVain(share?: string): void {
    this.#forgotten++
    if (share === undefined) this.#vain.clear()
    else this.#vain.delete(share)
  }

  #vainOf(share: string, nowMs: number): number {
    const vain = this.#vain.get(share)
    if (vain === undefined) return 0
    if (nowMs - vain.atMs <= VAIN_MS) return vain.upTo
    this.#vain.delete(share)
    return 0
  }

  get forgotten(): number {
    return this.#forgotten
  }

  /** The next row of a key may be read. */
  keyMayGoOn(key: string): void {
    if (!this.isInOrder) this.#keys.add(key)
  }

  takeKeys(): string[] {
    const keys = [...this.#keys].slice(0, SHARES_MAX)
    for (const key of keys) this.#keys.delete(key)
    return keys
  }

  /** @returns shares by priority, and the places behind which they are read */
  takeNamed(): { shares: string[][]; after: ReadonlyMap<string, number> } {
    this.#wereNamed = true
    const after = new Map([...this.#named].slice(0, SHARES_MAX))
    for (const share of after.keys()) this.#named.delete(share)
    const shares = PRIORITIES.map((priority) => [...after.keys()].filter((share) => share.startsWith(priority)))
    return { shares, after }
  }

  /**
   * @param shares by priority
   * @param room of the group
   * @param roomOf how many rows of a share may be in the hub
   * @param nowMs by the steady clock
   * @param after the places behind which they are read; default: from their first rows
   * @returns what is to be read of them, in this order
   */
  asks(
    shares: readonly string[][],
    room: number,
    pageRows: number,
    roomOf: (share: string) => number,
    nowMs: number,
    after?: ReadonlyMap<string, number>,
  ): ShareAsk[] {
    const byPriority = shares.map((all) => {
      const free = all.flatMap((share) => {
        const { inHub, rows } = this.#shares.get(share) ?? { inHub: 0, rows: [] }
        const cap = Math.min(room, roomOf(share))
        // At least half of it is empty, so that pages are not too short.
        const isFree = inHub <= cap / 2 && cap !== inHub
        if (!isFree) this.leftOut()
        return isFree ? [{ share, left: cap - inHub, rows }] : []
      })
      const each = Math.max(1, Math.floor(pageRows / Math.max(1, free.length)))
      return free.map(({ share, left, rows }) => ({
        share,
        limit: Math.min(each, left),
        after: Math.max(after?.get(share) ?? 0, this.#vainOf(share, nowMs)),
        inHand: [...rows],
      }))
    })
    const kind = Number(this.#wereNamed)
    const order = FIRST_PRIORITIES.get(++this.#pages[kind]! % PAGES) ?? [0, 1, 2]
    return order.flatMap((n) => byPriority[n]!)
  }

  /** A round goes on. */
  turns(): void {
    this.#wereNamed = false
    if (this.state === 'due') {
      this.#hasTurned.fill(false)
      this.#isWhole = this.isUnsharedRead
    }
    for (const [n, after] of this.after.entries())
      this.#hasBegun[n] = after === '' || (this.state === 'turning' && this.#hasBegun[n]!)
    this.state = 'turning'
  }

  /** Some rows are left out, or may be. */
  leftOut(): void {
    this.#isWhole = false
  }

  /** A page of a round is over. @param unread those that the group had no room for */
  turned(shares: readonly string[][], unread: ReadonlySet<string>, given: number): void {
    for (const [n, all] of shares.entries()) {
      const first = all.findIndex((share) => unread.has(share))
      if (first > 0) this.after[n] = all[first - 1]!
      if (first >= 0) continue
      const isLast = all.length < SHARES_MAX
      this.after[n] = isLast ? '' : all.at(-1)!
      if (isLast && this.#hasBegun[n]!) this.#hasTurned[n] = true
    }
    if (given > 0) this.state = 'due'
    else if (this.state === 'turning' && this.#hasTurned.every(Boolean)) this.state = 'read'
  }

  /**
   * None of its rows between two places may be read.
   * @param upTo 0: nor any behind
   * @param decided no row can appear up to this place; 0: rows have come back meanwhile
   */
  passed({ share, after }: ShareAsk, upTo: number, decided: number, nowMs: number): void {
    const vain = this.#vain.get(share) ?? { upTo: 0, atMs: nowMs }
    const known = Math.min(upTo === 0 ? decided : upTo, decided)
    if (after <= vain.upTo && known > vain.upTo) {
      if (this.#vain.size >= VAIN_MAX) this.#vain.clear()
      this.#vain.set(share, { ...vain, upTo: known })
    }
    if (upTo === 0) {
      if (this.#passing.delete(share)) this.#inVain.set(share, nowMs)
      return
    }
    this.leftOut()
    this.#passing.add(share)
    if (this.#named.get(share) !== 0) this.#named.set(share, upTo)
  }

  /** False if all rows of a share have just been looked at in vain. */
  mayPass(share: string, nowMs: number): boolean {
    if (this.#passing.has(share)) return true
    const lastMs = this.#inVain.get(share)
    if (lastMs !== undefined && nowMs - lastMs < PASS_EVERY_MS) return false
    this.#inVain.delete(share)
    return true
  }

  inHubOf(share: string): number {
    return this.#shares.get(share)?.inHub ?? 0
  }

  /** True if one more row of a share may be in the hub, in order. @param room of the group @param ofShare how many may be */
  hasRoom(share: string, room: number, ofShare: number): boolean {
    return this.inHubOf(share) < Math.min(room, ofShare)
  }

  /** @param isInHub false for a row whose outcome is not committed yet */
  given(share: string, seq: number, key: string | null, isInHub = true): void {
    if (key !== null) this.#keyed.set(seq, key)
    else if (share === '') return
    let inHand = this.#shares.get(share)
    if (inHand === undefined) {
      inHand = { inHub: 0, rows: new Set() }
      this.#shares.set(share, inHand)
    }
    if (isInHub) inHand.inHub++
    inHand.rows.add(seq)
  }

  /** The hub has not taken it: it is read with the next news. */
  refused(share: string, seq: number): void {
    this.forgetVain(share)
    this.#keyed.delete(seq)
    const inHand = this.#shares.get(share)
    if (inHand === undefined) return
    inHand.inHub--
    inHand.rows.delete(seq)
    if (inHand.rows.size === 0) this.#shares.delete(share)
  }

  /** The hub is done with one of its rows. */
  left(share: string): void {
    const inHand = this.#shares.get(share)
    if (inHand === undefined) return
    inHand.inHub--
    this.mayGoOn(share)
  }

  /** A row is no longer in hand: the next one of its key may be read. */
  gone(share: string, seq: number, key: string | null): void {
    this.#keyed.delete(seq)
    if (key !== null) this.keyMayGoOn(key)
    const inHand = this.#shares.get(share)
    if (inHand === undefined) return
    inHand.rows.delete(seq)
    if (inHand.rows.size === 0) this.#shares.delete(share)
  }
}
