import { HeddleError } from '../../core/errors/catalogue.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
import type { DurableLogOptions } from '../event-store/store-options.ts'
import { KeySlots, Membership, type OtherProcess } from './membership.ts'
import type { OpenLetters } from './open-letters.ts'
import type { PositionQueue } from './positions.ts'
import type { SetAside } from './set-aside.ts'
import type { Settler } from './settler.ts'
import { BroadcastCopies, CHANNEL, FreeEvents, SharedWork } from './shared-work.ts'
import type { StoredRow } from './sql-log.ts'
import { type StoredEvent, type StoredEvents, UNKNOWN_SLOT } from './stored-events.ts'

/** How long a process that starts waits until the others reckon with it, milliseconds; then it tries again. */
const MEET_MS = 3000
const MEET_LOOK_MS = 20
/** An insert is over after this time, one way or the other, milliseconds. Its lane may have died with it. */
const INSERT_MAX_MS = 30_000
/** Events of lanes that have been handed on are here after this time, milliseconds. */
const HANDED_ON_MS = 40
/** How often events of no process are looked for without a notification, milliseconds. */
const POLL_MS = 1000

/** How often those that no process has are counted, milliseconds. */
const COUNT_MS = 2000

/**
 * How events with keys are stored and delivered.
 *
 * - `alone`: this process keeps what it stores, and delivers it from memory.
 * - `parting`: another one has come. New ones belong to no process; those that lanes have begun to store in the old way are waited for.
 * - `shared`: the holder of a key's slot takes them from the log, in the order of the commits.
 * - `settling`: the others have gone. New ones are kept, and wait until those that belong to no process have been taken.
 */
type Mode = 'alone' | 'parting' | 'shared' | 'settling'

interface SharedLogParts {
  setAside: SetAside
  events: StoredEvents
  letters: OpenLetters
  settler: Settler
  /** Positions of events that the hub had no room for, and of those that go on before what came later. */
  passed: PositionQueue
  freed: PositionQueue
  /** There is something to be read. */
  onFree: () => void
}

/** This process among those that share the log on a server, and who of them delivers the events of which keys. */
export class SharedLog {
  readonly members: Membership
  readonly #options: DurableLogOptions
  readonly #clock: Clock
  readonly #parts: SharedLogParts
  readonly #slots: KeySlots
  readonly #free: FreeEvents
  /** Slots of which the open letters are known here: what has come with a slot must not pass them. */
  #learned: ReadonlySet<number> = new Set()
  readonly #work: SharedWork
  readonly #copies: BroadcastCopies
  #mode: Mode = 'shared'
  /** Since when it is so, by `steadyMs`. */
  #modeMs = 0
  /** When all inserts of the old kind were over. */
  #overMs = 0
  #others: readonly OtherProcess[] = []
  /** The highest number of a process that this one has said it reckons with. */
  #knows = 0
  #isReady = false
  /** The others can know it. */
  #isKnownReady = false
  /** There may be events of no process with keys of this one's slots. */
  #hasFree = false
  /** This process may own events that it does not know of. */
  #isDoubtful = false
  /** There may be copies for this process. */
  #hasCopies = false
  /** Other processes take part in the delivery. */
  #hasPeers = false
  #polledMs = 0
  /** Events that no process has, as they were counted last, with those that have come or gone here since. */
  #freeCount = 0
  #countedMs = 0
  #stopListening: (() => void) | null = null

  constructor(options: DurableLogOptions, parts: SharedLogParts) {
    this.#options = options
    const { clock } = options.log
    this.#clock = clock
    this.#parts = parts
    this.members = new Membership({ ...options, onLook: (others) => this.#look(others) })
    const database = () => options.log.database
    const epoch = () => this.members.epoch
    this.#slots = new KeySlots(database, epoch)
    this.#free = new FreeEvents(database, epoch, clock)
    const { hub } = options
    this.#copies = new BroadcastCopies({
      hub,
      settler: parts.settler,
      clock,
      database,
      epoch,
      onStored: (event) => parts.events.release(event),
      onMade: () => this.#free.tell('copies'),
      onMalformed: (number, why) => parts.setAside.tell('heddle_copy', `number ${number}`, why),
    })
    this.#work = new SharedWork({
      ...parts,
      hub: options.hub,
      clock,
      free: this.#free,
      isRelayed: options.relay !== null,
    })
  }

  /** True while events with keys that are kept wait for those that belong to no process. */
  get isSettling(): boolean {
    return this.#mode === 'settling'
  }

  /** Events that are stored and that no process has. */
  get freeCount(): number {
    return this.#freeCount
  }

  /** True when there may be events of no process to be taken. While this one parts with its own, older ones of their keys are among those. */
  get hasFree(): boolean {
    return (
      this.#isReady && this.#mode !== 'parting' && (this.#hasFree || (this.#mode !== 'alone' && this.#work.isHungry))
    )
  }

  /** Joins the other processes. It may be called again after it has rejected. @throws EVENT_BUS_UNAVAILABLE when one of them does not answer */
  async join(): Promise<void> {
    const { members } = this
    const { memory, database } = this.#options.log
    await members.enter()
    const others = await members.meet()
    if (others.length === 0 && (await this.#slots.takeAll())) {
      memory.beAlone()
      this.#mode = 'alone'
    } else {
      memory.share()
      await this.#meet()
    }
    await this.#parts.letters.learn()
    this.#learned = this.#slots.held
    await members.open()
    this.#stopListening ??= database.listen?.(CHANNEL, (payload) => this.#hear(payload)) ?? null
  }

  /** Waits until all others reckon with this process: then they keep no event with a key that comes after one of its own. */
  async #meet(): Promise<void> {
    const endMs = this.#clock.steadyMs() + MEET_MS
    for (;;) {
      this.#others = await this.members.meet()
      await this.#sayKnown()
      const waited = this.#others.find(({ adopter, knows }) => adopter === null && Number(knows) < this.members.epoch)
      if (waited === undefined) return
      if (this.#clock.steadyMs() > endMs) {
        const message = `The process ${waited.replica}, which shares the event log, does not answer: waiting for it to go on, or for its lease to lapse`
        throw new HeddleError('EVENT_BUS_UNAVAILABLE', message)
      }
      this.#free.tell('processes')
      await pause(this.#clock, MEET_LOOK_MS)
    }
  }

  /** Another process has taken over before this one delivered anything: it may join again, under another number. */
  reset(): void {
    this.members.reset()
    this.#slots.forget()
    this.#learned = new Set()
    this.#become('shared')
    this.#others = []
    this.#knows = 0
    this.#isKnownReady = false
  }

  /** All subscribers are known: takes part in the delivery. */
  adopt(): void {
    this.#isReady = true
    void this.members.look()
  }

  #hear(payload: string): void {
    if (payload.startsWith(`${this.members.epoch} `)) return
    this.#expectAll()
    if (payload === '' || payload.includes('processes')) void this.members.look()
    this.#parts.onFree()
  }

  /** An event of no process has been stored here. */
  came(): void {
    this.#hasFree = true
    this.#freeCount++
    if (this.#others.length > 0) this.#free.tell('events')
    this.#parts.onFree()
  }

  /** Copies an event for the other processes, if it is for all threads. */
  deliver(event: string, entry: StoredEvent): void {
    if (!this.#hasPeers || this.#options.relay !== null || this.#options.hub.broadcastGroupsOf(event).length === 0)
      return
    this.#copies.make(entry)
  }

  async #look(others: readonly OtherProcess[]): Promise<void> {
    this.#others = others
    if (this.#isReady && !this.#isKnownReady) {
      const { database } = this.#options.log
      await database.execute('UPDATE heddle_process SET is_ready = 1 WHERE epoch = $1', [this.members.epoch])
      this.#isKnownReady = true
      this.#free.tell('processes')
    }
    // Until its subscribers are known nobody else calls it.
    if (!this.#isReady) await this.step()
    if (this.#mode === 'alone' && others.length === 0) return
    const members = others.flatMap(({ epoch, is_ready, adopter }) =>
      Number(is_ready) === 1 && adopter === null ? [Number(epoch)] : [],
    )
    this.#hasPeers = members.length > 0
    if (this.#isReady) members.push(this.members.epoch)
    await this.#slots.look(members)
    const { held } = this.#slots
    this.#learned = new Set([...this.#learned].filter((slot) => held.has(slot)))
    // Those that have come, or of which it could not be learned before.
    if (this.#learned.size === held.size) return
    await this.#parts.letters.learn()
    this.#learned = held
    this.#hasFree = true
  }

  /** The next events that an ended process has left to this one. */
  async nextLeft(): Promise<StoredRow[]> {
    await this.#parts.letters.learnOf(this.members.adopting)
    return this.members.nextPage()
  }

  /**
   * Takes what no process has, where this one has all keys: it may be older than what is taken beside it. Where others have some, who lacks a group
   * and who has it may pass each other.
   * @returns positions
   */
  async takeOlder(): Promise<number[]> {
    const taken: number[] = []
    if (this.#mode === 'alone' || this.#mode === 'parting' || !this.#slots.hasAll) return taken
    for (;;) {
      const rows = await this.#takeKeyed()
      if (rows.length === 0) return taken
      for (const { row } of rows) taken.push(Number(row.seq))
    }
  }

  /** Among them may be the replay of a letter that holds up its key here, which an ended process had begun. */
  async #takeKeyed(): Promise<StoredRow[]> {
    const rows = await this.#free.takeKeyed(this.#learned)
    if (rows.length > 0 && !this.#options.hub.parked.isEmpty) await this.#parts.letters.learn()
    return rows
  }

  /** Takes the next events that this process is to deliver. */
  async nextFree(): Promise<StoredRow[]> {
    await this.clearDoubts()
    let rows: StoredRow[] = []
    if (this.#hasFree) {
      this.#hasFree = false
      rows = await this.#takeKeyed()
      if (rows.length > 0) this.#hasFree = true
      else if (this.#mode === 'settling' && this.#isOver(true)) this.#become('alone')
    }
    if (rows.length === 0 && this.#work.isHungry) rows = await this.#work.take()
    this.#freeCount = Math.max(0, this.#freeCount - rows.length)
    return rows.map((row) => ({ ...row, isNew: !this.members.isOwn(Number(row.row.seq)) }))
  }

  /** Does what is to be done when processes come or go. Nothing else reads the log meanwhile. */
  async step(): Promise<void> {
    if (this.members.epoch === 0) return
    if (this.#mode === 'alone' && this.#others.length > 0) {
      this.#options.log.memory.share()
      this.#become('parting')
    }
    if (this.#mode === 'parting' && this.#isOver(false)) await this.#part()
    if (this.#mode === 'shared') {
      await this.#sayKnown()
      await this.#handOver()
      if (this.#hasPeers && this.#options.relay === null) await this.#work.leave()
    }
    if (this.#mode !== 'alone' && this.#clock.steadyMs() - this.#polledMs > POLL_MS) {
      this.#polledMs = this.#clock.steadyMs()
      if (this.#mode === 'shared') await this.#settle()
      this.#expectAll()
    }
    if (this.#mode === 'alone') this.#freeCount = 0
    else if (this.#clock.steadyMs() - this.#countedMs > COUNT_MS) {
      this.#countedMs = this.#clock.steadyMs()
      this.#freeCount = await this.#free.count(2 * this.#options.maxStored)
    }
    if (this.#hasCopies && this.#isReady) this.#hasCopies = await this.#copies.deliver()
  }

  #expectAll(): void {
    this.#hasFree = true
    this.#work.expect()
    this.#hasCopies = true
  }

  /** Something could not be read, or its answer did not come: this process may own events that it does not know of. */
  doubt(): void {
    this.#isDoubtful = true
    this.#expectAll()
  }

  /** What this process does not have in hand belongs to none again. Of its own without a key some may be on their way to it. */
  async clearDoubts(): Promise<void> {
    if (!this.#isDoubtful) return
    if (this.#mode === 'shared') await this.#freeAllBut((kept) => this.#free.freeUnknown(kept, this.members.bases))
    this.#isDoubtful = false
  }

  /** Whoever takes what is freed reads what was done of it here. @param free given the positions of what is kept */
  async #freeAllBut(free: (kept: readonly number[]) => Promise<void>): Promise<void> {
    const { events, settler } = this.#parts
    const gone = new Set<number>()
    events.collectLeavers(gone)
    try {
      await settler.written()
      await free([...this.#inHand(), ...gone])
    } finally {
      events.collectLeavers(null)
    }
  }

  /** Positions of the events that the hub has, that wait behind its letters or go on behind them, or that are being forgotten. */
  #inHand(): number[] {
    const { events, settler, freed } = this.#parts
    return [
      ...settler.forgetting,
      ...this.#options.hub.parked.positions,
      ...freed.list(),
      ...events.positionsOf(() => true),
    ]
  }

  #become(mode: Mode): void {
    this.#mode = mode
    this.#modeMs = this.#clock.steadyMs()
    this.#overMs = 0
  }

  /** True when nothing is being stored any more as it was before the mode changed. @param isShared how that was */
  #isOver(isShared: boolean): boolean {
    const { memory } = this.#options.log
    if (this.#clock.steadyMs() - this.#modeMs > INSERT_MAX_MS) memory.forgetInserts(isShared)
    if (this.#overMs === 0 && memory.insertsOpen(isShared) === 0) this.#overMs = this.#clock.steadyMs()
    return this.#overMs > 0 && this.#clock.steadyMs() - this.#overMs > HANDED_ON_MS
  }

  /** What has a key and is not in the hub is there for whoever gets its slot. */
  async #part(): Promise<void> {
    await this.#freeAllBut((kept) => this.#free.freeKeyed(kept))
    this.#become('shared')
    this.#hasFree = true
  }

  /** From now on the others know that this process reckons with them. */
  async #sayKnown(): Promise<void> {
    const last = Math.max(0, ...this.#others.map(({ epoch }) => Number(epoch)))
    if (last <= this.#knows) return
    await this.#options.log.database.execute('UPDATE heddle_process SET knows = $1 WHERE epoch = $2', [
      last,
      this.members.epoch,
    ])
    this.#knows = last
  }

  /** Hands slots over of which nothing is in hand any more. */
  async #handOver(): Promise<void> {
    const { leaving } = this.#slots
    if (leaving.size === 0) return
    const { events, settler } = this.#parts
    await this.#findSlots()
    const isLeaving = ({ slot }: StoredEvent): boolean => leaving.has(slot)
    // One that a thread has is the log's with its slot, when it has ended: of its key nothing is taken here meanwhile.
    if (await this.#work.giveBack(isLeaving)) this.#hasFree = true
    if (events.has((event) => isLeaving(event) || event.slot === UNKNOWN_SLOT)) return
    await settler.written()
    events.unpark(await this.#slots.handOver(leaving))
    this.#free.tell('processes')
  }

  /** What was stored while this process was alone, or has waited in the log, is here without its slot. */
  async #findSlots(): Promise<void> {
    const { events } = this.#parts
    const unknown = events.positionsOf(({ slot }) => slot === UNKNOWN_SLOT)
    if (unknown.length === 0) return
    for (const [seq, slot] of await this.#slots.slotsOf(unknown)) events.isOfSlot(seq, slot)
  }

  /** The others have gone for good: this process keeps its events again. */
  async #settle(): Promise<void> {
    const hasMore = this.#hasFree || this.members.hasOrphans
    if (this.#others.length > 0 || !this.#slots.hasAll || hasMore || this.members.fault !== null) return
    if (await this.#free.hasUnkeyed()) return
    this.#options.log.memory.beAlone()
    this.#become('settling')
    this.#hasFree = true
  }

  async leave(): Promise<void> {
    this.#stopListening?.()
    await this.members.leave()
    this.#free.tell('processes')
  }
}
