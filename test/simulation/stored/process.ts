/** A process with the hub and the event store as they are, and lanes that are simulated. */

import type { FollowedEvent, SubscriberOptions } from '../../../src/contracts/event-bus.ts'
import type { Payload } from '../../../src/contracts/events.ts'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import type { Durable } from '../../../src/primary/event-store/durable.ts'
import type { StoredDeadLetters } from '../../../src/primary/event-store/stored-dead-letters.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import type { LaneSubscribers } from '../../../src/primary/events/lane-subscribers.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import type { Report } from '../../../src/runtime/event-store/report.ts'
import { StorePublisher, ThreadStore } from '../../../src/runtime/event-store/thread-store.ts'
import { sharesFor } from '../../../src/runtime/events/shares.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import { STORE_MEMORY_BYTES, StoreMemory } from '../../../src/transport/memory/store-memory.ts'
import type { ToLane } from '../../../src/transport/messages.ts'
import type { Holder } from './database.ts'
import type { Told } from './followers.ts'
import { Answers } from './limits.ts'
import { type GroupPlan, type Handling, isAsking } from './oracle.ts'
import type { StoredRun } from './run.ts'

const BOX = { message: 'it died', guilty: null, steps: [] } as unknown as BlackBox
const NOTHING: ReadonlySet<number> = new Set()
const NOT_NOW = { message: 'not now' }

/** Its lease is by the simulated clock. */
class SimulatedMemory extends StoreMemory {
  readonly #steadyMs: () => number
  #trustedUntilMs = Number.POSITIVE_INFINITY

  constructor(steadyMs: () => number) {
    super(new SharedArrayBuffer(STORE_MEMORY_BYTES))
    this.#steadyMs = steadyMs
  }

  override trustFor(ms: number): void {
    this.#trustedUntilMs = this.#steadyMs() + ms
  }

  override get isTrusted(): boolean {
    return this.#steadyMs() < this.#trustedUntilMs
  }
}

export class SimulatedProcess implements Holder {
  readonly owner = this
  isAlive = true
  isEnding = false
  isUp = false
  /** Another one has taken over what it had, or it has left that to others. */
  isOut = false
  hasStoodStill = false
  readonly startedMs: number
  /** When it last went on after it had stood still. */
  wentOnMs = 0
  /** What somebody does to dead letters here. */
  operations = 0
  /** Others cannot know that it is dead: it runs elsewhere. */
  readonly isRemote: boolean
  /** What waits until it goes on; null: it does not stand still. */
  #still: (() => void)[] | null = null
  /** Those that its plugins subscribe for: one of them may not boot. */
  readonly groups: GroupPlan[]
  readonly run: StoredRun
  readonly number: number
  readonly hub: Hub
  readonly log: ThreadStore
  readonly durable: Durable
  readonly letters: StoredDeadLetters
  readonly subscribers: LaneSubscribers
  readonly memory: StoreMemory
  readonly lanes = new Set<StoredLane>()
  readonly limitAnswers: Answers
  #quarantine: StoredLane | null = null
  #isQuarantineWanted = false
  #lanes = 0

  constructor(run: StoredRun, number: number, groups: GroupPlan[], isRemote: boolean) {
    this.groups = groups
    this.isRemote = isRemote
    this.run = run
    this.number = number
    this.startedMs = run.clock.steadyMs()
    const { plan } = run
    const database = run.database.connect(this)
    const clock = run.clockOf(this)
    this.memory = new SimulatedMemory(run.clock.steadyMs)
    this.log = new ThreadStore(
      this.memory,
      () => database,
      { maxStored: plan.maxStored, hasBroker: false },
      clock,
      run.draw,
    )
    this.limitAnswers = new Answers(run.clock.steadyMs)
    this.hub = new run.engine.Hub({
      maxQueue: plan.maxQueue,
      clock,
      chance: run.draw,
      sharedLimits: {
        isShared: () => this.log.isOnServer,
        ask: (asks) => this.limitAnswers.time(() => run.engine.askLimits(database, asks)),
        // No lane of the simulation is late.
        giveBack: async () => {},
      },
      sharedPermits: {
        isShared: () => this.log.isOnServer,
        ask: (asks) => this.log.opened().then(() => run.engine.askPermits(database, this.memory.member, asks)),
        tell: (permits) => run.engine.tellPermits(database, this.memory.member, permits),
      },
      onQuarantine: (isWanted) => this.#wantQuarantine(isWanted),
      onQuarantineUsed: () => {
        const lane = this.#quarantine
        this.later(0, () => lane?.gone(false))
      },
      log: (_, message) => run.tell(() => `log: ${message}`),
    })
    const { hub } = this
    const take = hub.take.bind(hub)
    hub.take = (event, shares) => {
      run.taken(event, shares, this)
      return take(event, shares)
    }
    hub.records.addFailureListener(({ event_id, subscriber }) => {
      run.tell(() => `${event_id} is a dead letter of ${subscriber}`)
      // What a listener throws is the hub's to log.
      run.cured(event_id, subscriber)
      run.lookAfterStill()
      run.turns.gone(event_id, subscriber)
      run.followers.letter(event_id, subscriber)
      run.judge(() => !this.isOut && run.oracle.letter(event_id, subscriber, this))
    })
    this.subscribers = new run.engine.LaneSubscribers(this.hub)
    this.durable = new run.engine.Durable({
      hub: this.hub,
      log: this.log,
      maxQueue: plan.maxQueue,
      maxStored: plan.maxStored,
      mayMakeTables: true,
      isRequired: true,
      deathsOf: null,
      replica: `r${number}`,
      processes: { own: () => String(number), isKnownDead: (identity) => run.isKnownDead(Number(identity)) },
      onLost: () => run.lost(this),
      relay: null,
      write: (changes) => run.engine.writeStoreChanges(database, changes),
      isAlive: (threadId) => threadId === 0,
      report: (level, message) => {
        run.tell(() => `log: ${level} ${message}`)
        if (message.startsWith('EVENT_STORE_BROKEN')) run.broken(message)
      },
    })
    this.letters = new run.engine.StoredDeadLetters(this.hub, this.log, this.durable)
  }

  later(ms: number, work: () => void): void {
    this.run.clock.in(ms, () => this.awake(work))
  }

  get isFrozen(): boolean {
    return this.#still !== null
  }

  awake(work: () => void): void {
    if (!this.isAlive) return
    if (this.#still === null) work()
    else this.#still.push(work)
  }

  /** As SIGSTOP and, later, SIGCONT. */
  freeze(ms: number): void {
    if (this.#still !== null) return
    this.#still = []
    this.hasStoodStill = true
    this.run.tell(() => `process ${this.number} stands still for ${ms} ms`)
    this.run.clock.in(ms, () => {
      const still = this.#still ?? []
      this.#still = null
      this.wentOnMs = this.run.clock.steadyMs()
      if (this.isAlive) this.run.tell(() => `process ${this.number} goes on`)
      for (const work of still) this.awake(work)
    })
  }

  /** As the runtime starts: the log, then lanes with their subscribers, then what an earlier process has left. */
  async start(): Promise<void> {
    await this.durable.open()
    await new Promise<void>((resolve) => this.later(this.run.draw.between(1, 50), resolve))
    for (let n = 0; n < this.run.plan.lanes; n++) this.#startLane('regular')
    await this.durable.adopt()
    this.isUp = true
    this.run.tell(() => `process ${this.number} is up`)
  }

  #startLane(role: 'regular' | 'quarantine'): StoredLane {
    const lane = new StoredLane(this, ++this.#lanes, role)
    this.lanes.add(lane)
    for (const group of this.groups) this.#add(lane, lane.groups.push(group.group) - 1, group)
    this.subscribers.complete(lane.asLane)
    return lane
  }

  #add(lane: StoredLane, index: number, plan: GroupPlan): void {
    const { group, event, retries, parks, isFair, limit, concurrency, permits } = plan
    const onDead = parks ? ('park' as const) : ('skip' as const)
    const options: SubscriberOptions = { retries, backoffMs: 20, timeoutMs: 60_000, onDead, group }
    if (isFair) options.fair = 0
    if (limit !== null) {
      const { max, perMs, isByShare } = limit
      options.limit = [isByShare ? { max, perMs, by: 0 } : { max, perMs }]
    }
    if (concurrency !== null) options.concurrency = concurrency
    if (permits !== null) options.concurrency = permits.isByShare ? { max: permits.max, by: 0 } : { max: permits.max }
    this.subscribers.add(lane.asLane, index, { event, identity: group, plugin: group, options }, false)
  }

  /** A plugin that it has lacked is there. */
  subscribe(group: GroupPlan): void {
    this.groups.push(group)
    for (const lane of this.lanes) {
      if (lane.isAlive)
        lane.subscribe(group, (index) => {
          this.#add(lane, index, group)
          this.durable.subscribed()
        })
    }
  }

  /** Whose an event is, to those of its groups that ask. */
  sharesOf(event: string, payload: string, priority: string): string {
    const asking = this.groups
      .filter((each) => each.event === event && isAsking(each))
      .map(({ group }) => ({ group, functions: [({ of }: Payload) => of as string] }))
    return sharesFor(asking, priority, payload, () => {})
  }

  #wantQuarantine(isWanted: boolean): void {
    this.#isQuarantineWanted = isWanted
    if (isWanted)
      this.later(0, () => {
        if (this.#isQuarantineWanted && this.#quarantine === null) this.#quarantine = this.#startLane('quarantine')
      })
    else this.later(1000, () => !this.#isQuarantineWanted && this.#quarantine?.gone(false))
  }

  laneGone(lane: StoredLane, unread: ReadonlySet<number>, isDeath: boolean): void {
    this.lanes.delete(lane)
    this.subscribers.leave(lane.asLane)
    this.subscribers.forget(lane.asLane, isDeath ? unread : NOTHING, isDeath ? BOX : null)
    this.durable.laneGone()
    if (lane === this.#quarantine) {
      this.#quarantine = null
      if (this.#isQuarantineWanted) this.#wantQuarantine(true)
    } else if (!this.isEnding)
      this.later(this.run.draw.of([1, 30, 300]), () => !this.isEnding && this.#startLane('regular'))
  }

  /** Plugins may publish while they boot. */
  get ready(): StoredLane[] {
    if (this.isEnding) return []
    return [...this.lanes].filter(({ isAlive, role }) => isAlive && role === 'regular')
  }

  /** As the runtime ends: what is in hand may end, the rest stays in the log. */
  async stop(): Promise<void> {
    this.isEnding = true
    const { clock, draw } = this.run
    const deadlineMs = clock.steadyMs() + draw.of([0, 30, 400])
    this.durable.followed.stop()
    this.durable.end()
    this.hub.returnDelayed()
    while (this.hub.pending > 0 && clock.steadyMs() < deadlineMs)
      await new Promise<void>((resolve) => this.later(10, resolve))
    await this.durable.close(Math.max(clock.steadyMs() + 100, deadlineMs))
    for (const lane of this.lanes) lane.isAlive = false
    this.run.database.dropDead()
    // What they have sent is done.
    while (this.run.database.isBusy(this) || this.operations > 0)
      await new Promise<void>((resolve) => this.later(1, resolve))
    this.run.lanesEnded(this)
    await this.durable.leave()
    this.hub.close()
  }

  /** As `kill -9`. */
  kill(): void {
    this.isAlive = false
    for (const lane of this.lanes) lane.isAlive = false
    this.run.database.dropDead()
  }
}

interface Item {
  readonly frame: EventFrame
  readonly group: string
  handling: Handling | null
  /** It was taken back before it began. */
  isCancelled: boolean
  /** Nobody waits for it any more. */
  isLost: boolean
}

/** A lane: what it publishes is stored by itself, and what it says comes to the primary in its order. */
export class StoredLane implements Holder {
  readonly owner: object
  isAlive = true
  readonly role: 'regular' | 'quarantine'
  readonly number: number
  readonly index: number
  readonly groups: string[] = []
  state: 'ready' | 'dead' = 'ready'
  readonly responsive = true
  readonly heldMs = 0
  readonly heartbeat = { threadId: 0 }
  deliveriesInFlight = 0
  readonly #process: SimulatedProcess
  readonly #run: StoredRun
  readonly #publisher: StorePublisher
  /** For a user's transactions. */
  readonly #slowPublisher: StorePublisher
  /** For what its handlers report, and for those who follow. */
  readonly #reports: StoreDatabase
  readonly #log: ThreadStore
  readonly #items = new Map<number, Item>()
  readonly #said: (() => void)[] = []
  #isHeard = false

  constructor(process: SimulatedProcess, number: number, role: 'regular' | 'quarantine') {
    this.#process = process
    this.owner = process
    this.#run = process.run
    this.number = number
    this.index = role === 'quarantine' ? -1 : number
    this.role = role
    this.#reports = this.#run.database.connect(this)
    this.#log = this.#logOn(this.#reports)
    this.#publisher = this.#publisherOn(this.#run.database.connect(this))
    this.#slowPublisher = this.#publisherOn(this.#run.database.connect(this, true))
  }

  #logOn(database: StoreDatabase): ThreadStore {
    const { plan, draw } = this.#run
    const options = { maxStored: plan.maxStored, hasBroker: false }
    return new ThreadStore(this.#process.memory, () => database, options, this.#run.clockOf(this), draw)
  }

  #publisherOn(database: StoreDatabase): StorePublisher {
    const process = this.#process
    return new StorePublisher(
      this.#logOn(database),
      (frame) => {
        const stored = { ...frame }
        this.#say(() => process.durable.take(stored, process.subscribers.threadOf(this.asLane)))
      },
      (event, dueMs) => this.#say(() => process.durable.moved(event, dueMs)),
    )
  }

  /** The primary's own code knows no simulated lane: it uses only what one has. */
  get asLane(): Lane {
    return this as unknown as Lane
  }

  later(ms: number, work: () => void): void {
    this.#process.later(ms, () => {
      if (this.isAlive) work()
    })
  }

  get isFrozen(): boolean {
    return this.#process.isFrozen
  }

  awake(work: () => void): void {
    this.#process.awake(() => {
      if (this.isAlive) work()
    })
  }

  /** Written into the ring: it is read also when the lane has died since. */
  #say(word: () => void): void {
    if (!this.isAlive) return
    this.#said.push(word)
    this.#process.later(this.#run.draw.below(3), () => this.#hear(1))
  }

  #hear(words: number): void {
    if (this.#isHeard) return
    this.#isHeard = true
    for (let left = words; left > 0 && this.#said.length > 0; left--) this.#said.shift()!()
    this.#isHeard = false
  }

  /** In the midst of what another lane has said. */
  catchUp(): void {
    this.#hear(Number.POSITIVE_INFINITY)
  }

  get home(): SimulatedProcess {
    return this.#process
  }

  /** It counts before it says so. */
  subscribe({ group }: GroupPlan, add: (index: number) => void): void {
    this.#process.memory.subscribing()
    const index = this.groups.push(group) - 1
    this.#say(() => add(index))
  }

  publish(frame: EventFrame, isSlow: boolean): Promise<string> {
    return (isSlow ? this.#slowPublisher : this.#publisher).publish(frame)
  }

  sendDelivery(id: number, frame: EventFrame): boolean {
    if (this.state === 'dead') return false
    const item: Item = {
      frame: { ...frame },
      group: this.groups[frame.subscriber]!,
      handling: null,
      isCancelled: false,
      isLost: false,
    }
    this.#items.set(id, item)
    this.deliveriesInFlight++
    this.#run.judge(() => this.#run.sent(this.#process, item.frame, item.group))
    this.later(this.#run.draw.below(3), () => this.#begin(id, item))
    return true
  }

  abandonDelivery(): void {}

  /** The handler of a delivery should end: it does if it has not begun. */
  post({ delivery, reason }: Extract<ToLane, { type: 'delivery-lost' }>): void {
    const item = this.#items.get(delivery)
    if (item === undefined) return
    item.isLost = true
    if (reason !== 'cancelled') return
    if (item.handling === null) item.isCancelled = true
    else this.#run.oracle.takenBack(item.handling)
  }

  #begin(id: number, item: Item): void {
    const { draw, plan, oracle } = this.#run
    if (this.#run.mayKillLane(this)) return
    const process = this.#process
    if (item.isCancelled) return this.#answer(id, () => process.hub.delivered(id))
    if (!process.memory.isTrusted) return this.#answer(id, () => process.hub.failed(id, { ...NOT_NOW, away: true }))
    this.#run.lookAfterStill()
    let handling: Handling | null = null
    this.#run.judge(() => {
      handling = oracle.begun(item.frame.id, item.group, item.frame.payload, process)
      this.#run.uniques.begun(item.frame.id, item.group, item.frame.payload)
      this.#run.turnBegun(item.frame, item.group, process)
      this.#run.atWork(this, item.frame, item.group, handling)
    })
    item.handling = handling
    if (this.#run.mayKillProcess(this, item.frame.id, item.group)) return
    this.#run.tell(
      () =>
        `${item.frame.id} is begun for ${item.group} in lane ${process.number}.${this.number}, attempt ${item.frame.attempt & 0xffff}${item.frame.shares === '' ? '' : `, of ${item.frame.shares}`}`,
    )
    const told = this.#run.reportsOf(item.frame, item.group)
    const report = told === null ? null : this.#reportOf(item, told)
    if (told !== null) this.#emit(report!, told)
    this.later(draw.below(20) + this.#run.moreMs(item.group), () => {
      if (this.#run.mayKillLane(this)) return
      const outcome = this.#run.isHealed
        ? 'done'
        : draw.is(plan.rates.away)
          ? 'away'
          : draw.is(plan.rates.unrecoverable)
            ? 'unrecoverable'
            : draw.is(plan.rates.fail)
              ? 'failed'
              : 'done'
      if (outcome === 'done' && draw.is(plan.rates.child) && !this.#run.isHealed)
        void this.#run.publish(this, item.frame)
      this.#run.lookAfterStill()
      if (item.handling !== null) this.#run.judge(() => oracle.ended(item.handling!, outcome))
      this.#run.tell(() => `${item.frame.id} for ${item.group}: ${outcome}`)
      if (this.#run.mayKillLane(this)) return
      const answer = (): void =>
        this.#answer(id, () => {
          if (outcome === 'done') return this.#process.hub.delivered(id)
          this.#process.hub.failed(id, {
            ...NOT_NOW,
            ...(outcome === 'unrecoverable' && { unrecoverable: true }),
            ...(outcome === 'away' && { away: true }),
          })
        })
      if (told === null) return answer()
      if (!item.isLost) this.#emit(report!, told)
      this.#endReport(item, report!, told, outcome === 'done')
        .then(answer)
        .catch(this.#run.failed)
    })
  }

  #reportOf(item: Item, told: Told): Report {
    const { id: eventId, attempt } = item.frame
    const parts = {
      clock: this.#run.clockOf(this),
      database: () => this.#reports,
      opened: () => this.#log.opened(),
      reported: (of: string) => this.#say(() => this.#process.durable.reported(of)),
      log: (message: string) => {
        told.state = 'failed'
        this.#run.tell(() => `log: ${message}`)
      },
    }
    const place = { eventId, group: item.group, attempt: attempt & 0xffff }
    return new this.#run.engine.Report(parts, place, () => !item.isLost)
  }

  #emit(report: Report, told: Told): void {
    const chunks = this.#run.chunks()
    report.progress(told.emitted, told.emitted + chunks, undefined)
    for (let left = chunks; left > 0; left--) report.emit({ of: told.number, n: told.emitted++ })
  }

  /** Resolves when what its handler has reported is stored. */
  async #endReport(item: Item, report: Report, told: Told, isDone: boolean): Promise<void> {
    await (isDone ? report.end({ of: told.number }, this.#run.resultMsOf(item.group)) : report.failed())
    if (told.state !== 'running' || item.isLost || !this.isAlive) return
    told.stored = told.emitted
    told.state = isDone ? 'done' : 'ended'
  }

  follow(id: string, from: string): AsyncIterable<FollowedEvent> {
    const { durable } = this.#process
    const parts = {
      followed: (of: string, seen: string) => durable.followed.followed(of, seen),
      database: () => this.#reports,
    }
    return new this.#run.engine.Following(parts, id, { from })
  }

  #answer(id: number, answer: () => void): void {
    this.#say(() => {
      this.#items.delete(id)
      this.deliveriesInFlight--
      answer()
    })
  }

  /** Its thread has ended; the primary hears of it later. */
  die(): void {
    if (!this.isAlive) return
    this.#run.tell(() => `lane ${this.#process.number}.${this.number} dies`)
    this.isAlive = false
    this.#run.database.dropDead()
    this.#process.later(this.#run.draw.of([0, 20, 100]), () => this.gone(true))
  }

  gone(isDeath: boolean): void {
    if (this.state === 'dead') return
    // What it wrote before it ended is read first.
    this.catchUp()
    this.isAlive = false
    this.state = 'dead'
    this.#run.database.dropDead()
    const unread = new Set<number>()
    for (const [id, { handling }] of this.#items) {
      if (handling === null) unread.add(id)
      else this.#run.oracle.cutOff(handling)
    }
    this.#run.tell(() => `lane ${this.#process.number}.${this.number} is gone, with ${this.#items.size} deliveries`)
    this.#process.laneGone(this, unread, isDeath)
  }
}
