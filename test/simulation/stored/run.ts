/** One run: the hub and the event store as they are, over a real SQLite in memory whose connections, lanes and process fail. First faults, then all heals and everything must end. */
import type { Clock } from '../../../src/core/schedule/clock.ts'
import type { Durable } from '../../../src/primary/event-store/durable.ts'
import type { askLimits } from '../../../src/primary/event-store/shared-limits.ts'
import type { askPermits, tellPermits } from '../../../src/primary/event-store/shared-permits.ts'
import type { StoredDeadLetters } from '../../../src/primary/event-store/stored-dead-letters.ts'
import type { HubEvent, Share } from '../../../src/primary/events/consumer.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import type { LaneSubscribers } from '../../../src/primary/events/lane-subscribers.ts'
import type { Following } from '../../../src/runtime/event-store/following.ts'
import type { Report } from '../../../src/runtime/event-store/report.ts'
import type { writeStoreChanges } from '../../../src/runtime/event-store/write-changes.ts'
import { NORMAL, shareIn, valueIn } from '../../../src/runtime/events/shares.ts'
import type { EventFrame, UniqueEvent } from '../../../src/transport/frames/event-frame.ts'
import { Draw } from '../draw.ts'
import { Finding } from '../oracle.ts'
import { SimulatedClock } from '../time.ts'
import { type Holder, SimulatedDatabase, type SimulatedStore } from './database.ts'
import { Followers, type Told } from './followers.ts'
import { LimitJudge, type LimitPlan } from './limits.ts'
import { type GroupPlan, type Handling, StoredOracle } from './oracle.ts'
import { PauseJudge } from './pauses.ts'
import { PermitJudge } from './permits.ts'
import { SimulatedProcess, type StoredLane } from './process.ts'
import { type Recorded, SimulatedServer } from './server.ts'
import { TreeJudge, treeId } from './trees.ts'
import { TurnJudge } from './turns.ts'
import { type Asked, UniqueJudge } from './uniques.ts'

/** The classes that a run is made of: those of the project, or with a fault planted in them. */
export interface StoredEngine {
  Hub: typeof Hub
  LaneSubscribers: typeof LaneSubscribers
  Durable: typeof Durable
  StoredDeadLetters: typeof StoredDeadLetters
  writeStoreChanges: typeof writeStoreChanges
  askLimits: typeof askLimits
  askPermits: typeof askPermits
  tellPermits: typeof tellPermits
  Report: typeof Report
  Following: typeof Following
}

/** What is asked of the tables, of an event and a group. */
const IS_STORED = {
  sqlite: `SELECT 1 FROM heddle_delivery d LEFT JOIN heddle_group g ON g.id = d.grp WHERE d.event_id = ? AND (d.grp = 0 OR g.grp = ?)`,
  postgres: `SELECT 1 FROM heddle_delivery d LEFT JOIN heddle_group g ON g.id = d.grp WHERE d.event_id = ? AND (d.grp < -1 OR g.grp = ?)`,
}
/** Not only for all groups that will be known. */
const IS_IN = 'SELECT 1 FROM heddle_delivery d JOIN heddle_group g ON g.id = d.grp WHERE d.event_id = ? AND g.grp = ?'
const IS_BEGUN = `SELECT 1 FROM heddle_delivery d JOIN heddle_group g ON g.id = d.grp
  WHERE d.event_id = ? AND g.grp = ? AND (d.begun = 1 OR d.attempt > 1 OR d.deaths > 0)`
/** A handler was to begin it: its process may have ended before it was called. */
const IS_ALONE_NO_MORE = `SELECT 1 FROM heddle_delivery d JOIN heddle_group g ON g.id = d.grp
  WHERE d.event_id = ? AND g.grp = ? AND substr(d.uniq, 1, 1) = 'b'`
const HAS_LETTER = "SELECT 1 FROM heddle_dead WHERE event_id = ? AND grp = ? AND replay = ''"
/** Who has the slot of a delivery. */
const OWNERS = `SELECT s.member, d.slot FROM heddle_delivery d JOIN heddle_group g ON g.id = d.grp
  JOIN heddle_slot s ON s.grp = d.grp AND s.slot = d.slot WHERE d.event_id = ? AND g.grp = ?`
/** Of a lease of 10 s, which the server counts from when it is renewed, the last two are not used. */
const UNUSED_MS = 2000

/** Where the events are: in a file of one process, or on a server that several share. */
export type StoredLog = 'sqlite' | 'postgres'

export interface StoredRunOptions {
  log: StoredLog
  seed: number
  /** Then all heals. */
  steps: number
  /** Told what happens, a line each. */
  tell?: (line: string) => void
  /** Told what the server does. */
  record?: (recorded: Recorded) => void
}

/** Whose events are. */
interface SharePlan {
  readonly owners: number
  /** Events that have another priority. */
  readonly urgent: number
  /** Somebody publishes many at once. */
  readonly crowds: number
}

interface StoredPlan {
  readonly processes: number
  /** Processes of which others cannot know that they are dead. */
  readonly remote: number
  /** Outages that are longer than a lease. */
  readonly longOutages: number
  readonly lanes: number
  readonly groups: readonly GroupPlan[]
  readonly keys: number
  readonly keyed: number
  readonly delayed: number
  readonly mortal: number
  /** A subscriber has one at a time. */
  readonly unique: number
  /** A process lacks a group. */
  readonly lacking: number
  /** The first process lacks a group that others have. */
  readonly isFirstLacking: boolean
  readonly maxQueue: number
  readonly maxStored: number
  readonly pauseMs: number
  readonly rates: {
    fail: number
    unrecoverable: number
    away: number
    child: number
    laneDeath: number
    refused: number
    unanswered: number
    /** A process ends as soon as it has begun to replay a letter. */
    killedReplay: number
    /** Events of a user's transactions. */
    slow: number
    /** Events whose handler ends its process. */
    poison: number
  }
  /** Weights of what somebody does beside publishing. */
  readonly deeds: readonly Deed[]
  /** Null: events have no priorities, and no subscriber asks whose they are. */
  readonly shares: SharePlan | null
  /** Events that somebody follows. */
  readonly followed: number
  /** Subscribers are paused, and resumed. */
  readonly paused: number
  /** Cancels that take all back that an event has caused; null: none. */
  readonly trees: number | null
}

type Deed = 'publish' | 'kill' | 'stop' | 'killLane' | 'outage' | 'letter' | 'jump' | 'freeze' | 'subscribe' | 'cancel'

/** Has chance of its own: runs without it are as they were before. */
function withTurns(plan: StoredPlan, draw: Draw): StoredPlan {
  const areShared = draw.is(0.3)
  const areLimited = draw.is(0.2)
  if (!areShared && !areLimited) return plan
  const limitOf = (): LimitPlan => ({
    max: draw.between(2, 5),
    perMs: draw.of([100, 300, 1000]),
    isByShare: areShared && draw.is(0.5),
  })
  return {
    ...plan,
    // With room for many nobody waits for long.
    maxQueue: draw.of([8, 16, 100]),
    groups: plan.groups.map((group) => ({
      ...group,
      isFair: areShared && draw.is(0.7),
      limit: areLimited && draw.is(0.7) ? limitOf() : null,
      concurrency: draw.of([null, 1, 3]),
    })),
    shares: areShared
      ? { owners: draw.between(2, 6), urgent: draw.of([0, 0.1, 0.4]), crowds: draw.of([0.01, 0.05]) }
      : null,
  }
}

/** The same for what is followed, paused and bounded over processes. */
function withWork(plan: StoredPlan, draw: Draw): StoredPlan {
  const areFollowed = draw.is(0.25)
  const arePaused = draw.is(0.2)
  const arePermitted = draw.is(0.2)
  return {
    ...plan,
    groups: plan.groups.map((group) => ({
      ...group,
      reports: areFollowed ? draw.of(['nothing', 'chunks', 'result'] as const) : 'nothing',
      permits:
        arePermitted && draw.is(0.7)
          ? { max: draw.between(1, 3), isByShare: plan.shares !== null && draw.is(0.5) }
          : null,
    })),
    followed: areFollowed ? draw.of([0.3, 1]) : 0,
    paused: arePaused ? draw.of([0.005, 0.02]) : 0,
  }
}

function planOf(draw: Draw, log: StoredLog): StoredPlan {
  const isShared = log === 'postgres'
  const deeds: Deed[] = ['publish']
  const weights: Record<Exclude<Deed, 'publish'>, number> = {
    kill: 1,
    stop: 1,
    killLane: 1,
    outage: 1,
    letter: 3,
    jump: 1,
    freeze: isShared ? 1 : 0,
    subscribe: 1,
    cancel: 3,
  }
  for (const deed of Object.keys(weights) as Exclude<Deed, 'publish'>[])
    if (weights[deed] > 0 && draw.is(0.6)) for (let n = 0; n < weights[deed]; n++) deeds.push(deed)
  while (deeds.filter((deed) => deed === 'publish').length < (isShared ? 80 : 25)) deeds.push('publish')
  const processes = isShared ? draw.between(1, 3) : 1
  return {
    processes,
    longOutages: isShared ? draw.of([0, 0, 0.3]) : 0,
    remote: isShared ? draw.of([0, 0, 0.3]) : 0,
    lanes: draw.between(1, 3),
    groups: Array.from({ length: draw.between(1, 3) }, (_, n) => ({
      group: `g${n}.G`,
      event: draw.of(['a.b', 'c.d']),
      retries: draw.of([0, 1, 3]),
      parks: draw.is(0.5),
      isFair: false,
      limit: null,
      concurrency: null,
      permits: null,
      reports: 'nothing',
    })),
    keys: draw.between(1, 3),
    keyed: draw.of([0, 0.5, 1]),
    delayed: draw.of([0, 0, 0.2]),
    mortal: draw.of([0, 0, 0.2]),
    unique: draw.of([0, 0, 0.3]),
    lacking: draw.of([0, 0, 0.3]),
    isFirstLacking: processes > 1 && draw.is(0.2),
    maxQueue: draw.of([8, 30, 1000]),
    maxStored: 1_000_000,
    pauseMs: draw.of([3, 10, 40]),
    rates: {
      fail: draw.of([0, 0.05, 0.3]),
      unrecoverable: draw.of([0, 0.03]),
      away: draw.of([0, 0, 0.1]),
      child: draw.of([0, 0.1]),
      laneDeath: draw.of([0, 0.002, 0.01]),
      refused: draw.of([0, 0, 0.05]),
      unanswered: draw.of([0, 0, 0.05]),
      killedReplay: draw.of([0, 0.2]),
      slow: isShared ? draw.of([0, 0.05, 0.3]) : 0,
      poison: draw.of([0, 0, 0.01]),
    },
    deeds,
    shares: null,
    followed: 0,
    paused: 0,
    trees: null,
  }
}

/** The same for trees that are taken back. */
function withTrees(plan: StoredPlan, draw: Draw): StoredPlan {
  if (!draw.is(0.25)) return plan
  // An event that may be replaced is of the tree of whoever has replaced it: the rooms play that.
  // One that takes a replay back by its id alone is played by the other runs.
  const others = plan.deeds.filter((deed) => deed !== 'cancel')
  const deeds = [...others, ...Array.from({ length: 10 }, (): Deed => 'letter')]
  const rates = { ...plan.rates, child: draw.of([0.1, 0.4]), unrecoverable: draw.of([0.03, 0.2]) }
  return { ...plan, unique: 0, deeds, rates, trees: draw.of([0.01, 0.05]) }
}

export interface StoredResult {
  readonly seed: number
  readonly finding: string | null
  readonly steps: number
  readonly events: number
  readonly processes: number
}

/** So many processes may die of a delivery: three until it is suspected, and three that give it alone; a few may have had it in hand besides. */
const KILLED_MAX = 8
const HEAL_MS = 600_000
/** How long results are kept, milliseconds: longer than a run. */
const RESULT_MS = 7_200_000
/** Events that somebody follows at the end. */
const OLD_FOLLOWED = 10
/** Chance of another stream than that of the rest. */
const TURNS_SEED = 0x51ab_1e5
const WORK_SEED = 0x0b5e_77ed
const TREES_SEED = 0x7ee5_0a11
const CROWD = 60

/** Within this time a server does what a process had sent before it died, and nobody takes over meanwhile, milliseconds. */
const SENT_MS = 30

export class StoredRun {
  readonly engine: StoredEngine
  readonly clock = new SimulatedClock()
  /** How far the clock was ahead of the steady one at first. */
  readonly #aheadMs = this.clock.nowMs() - this.clock.steadyMs()
  readonly draw: Draw
  readonly plan: StoredPlan
  readonly database: SimulatedStore
  readonly oracle: StoredOracle
  readonly uniques: UniqueJudge
  readonly turns: TurnJudge
  readonly followers: Followers
  readonly #limits = new LimitJudge()
  readonly #permits = new PermitJudge()
  readonly #pauses: PauseJudge
  /** Groups that somebody pauses or resumes, and where. */
  readonly #pausing = new Map<string, SimulatedProcess>()
  /** Chance of what is drawn for turns and limits. */
  readonly #turnDraw: Draw
  /** The same of what is followed and paused. */
  readonly #workDraw: Draw
  readonly #treeDraw: Draw
  readonly trees = new TreeJudge()
  isHealed = false
  readonly #processes = new Set<SimulatedProcess>()
  /** Numbers of those that have ended, and of which others may know it. */
  readonly #ended = new Set<number>()
  #started = 0
  /** All groups are known to the log. */
  /** Events that were accepted before a group of theirs was stored. */
  #early: { id: string; group: string; process: SimulatedProcess }[] = []
  #areKnown = false
  /** Groups that were stored when nobody wrote. */
  readonly #known = new Set<string>()
  /** Deliveries that end their process, and how many. */
  readonly #poisons = new Map<string, number>()
  #events = 0
  #failure: unknown = null
  readonly #isShared: boolean
  readonly #steps: number
  readonly #seed: number
  readonly #tell: ((line: string) => void) | undefined

  constructor(engine: StoredEngine, { log, seed, steps, tell, record }: StoredRunOptions) {
    this.engine = engine
    this.#isShared = log === 'postgres'
    this.#seed = seed
    this.#steps = steps
    this.#tell = tell
    this.draw = new Draw(seed)
    this.#turnDraw = new Draw(seed ^ TURNS_SEED)
    this.#workDraw = new Draw(seed ^ WORK_SEED)
    this.#treeDraw = new Draw(seed ^ TREES_SEED)
    this.plan = withTrees(withWork(withTurns(planOf(this.draw, log), this.#turnDraw), this.#workDraw), this.#treeDraw)
    const { refused, unanswered } = this.plan.rates
    this.#pauses = new PauseJudge(refused + unanswered > 0)
    this.turns = new TurnJudge({
      room: Math.floor(this.plan.maxQueue / 2),
      shares: (this.plan.shares?.owners ?? 0) + 1,
    })
    const { draw, plan, clock } = this
    const world = {
      draw,
      faults: plan.rates,
      isHealed: () => this.isHealed,
      nowMs: () => clock.steadyMs(),
      later: (ms: number, run: () => void) => clock.in(ms, run),
      tell: (line: () => string) => this.tell(line),
      failed: this.failed,
      memberOf: (owner: object) => {
        const { memory, number } = owner as SimulatedProcess
        return { member: memory.member, name: `process ${number}` }
      },
    }
    this.database =
      log === 'sqlite'
        ? new SimulatedDatabase(world)
        : new SimulatedServer(record === undefined ? world : { ...world, record })
    this.oracle = new StoredOracle({
      isStored: (id, group) => this.#has(IS_STORED[log], id, group),
      latestMs: () => this.clock.latestMs(),
      isBegun: (id, group) => this.#has(IS_BEGUN, id, group),
      hasLetter: (id, group) => this.#has(HAS_LETTER, id, group),
      lacksRight: (id, group, by) => (log === 'sqlite' ? null : this.#lacksRight(id, group, by as SimulatedProcess)),
    })
    this.followers = this.#newFollowers()
    this.uniques = new UniqueJudge({
      isStored: (id, group) => this.#hasTables && this.#has(IS_STORED[log], id, group),
      isIn: (id, group) => this.#hasTables && this.#has(IS_IN, id, group),
      isBegun: (id, group) => this.#hasTables && this.#has(IS_ALONE_NO_MORE, id, group),
      mayHave: (...of) => this.oracle.mayHave(...of),
      mayMiss: (...of) => this.oracle.mayMiss(...of),
    })
  }

  #newFollowers(): Followers {
    const { oracle } = this
    return new Followers({
      draw: this.#workDraw,
      nowMs: this.clock.steadyMs,
      later: (ms, run) => this.clock.in(ms, run),
      tell: (line) => this.tell(line),
      failed: this.failed,
      lanes: () => [...this.#processes].flatMap(({ isFrozen, ready }) => (isFrozen ? [] : ready)),
      groupsOf: (id) => oracle.groupsOf(id).map(({ group, reports }) => ({ group, reports: reports !== 'nothing' })),
      hasEffects: (...of) => oracle.hasEffects(...of),
      hasLetter: (id, group) => this.#hasTables && this.#has(HAS_LETTER, id, group),
      mayHaveExpired: (...of) => oracle.mayHaveExpired(...of),
    })
  }

  #has(sql: string, ...params: (string | number)[]): boolean {
    return this.database.all(sql, ...params).length > 0
  }

  #lacksRight(id: string, group: string, { number, memory }: SimulatedProcess): string | null {
    const { member } = memory
    const [lease] = this.database.all<{ until: number }>('SELECT until FROM heddle_member WHERE id = ?', member)
    if (lease === undefined) return `by process ${number}, which others have removed`
    if (this.clock.steadyMs() >= lease.until - UNUSED_MS) return `by process ${number}, whose lease is over`
    const owners = this.database.all<{ member: number | null; slot: number }>(OWNERS, id, group)
    if (owners.length === 0 || owners.some((owner) => owner.member === member)) return null
    return `by process ${number}, member ${member}, and its slot is that of member ${owners[0]!.member}`
  }

  tell(line: () => string): void {
    this.#tell?.(`${String(this.clock.steadyMs()).padStart(7)}  ${line()}`)
  }

  /** The clock of a process: its timers end with it. */
  clockOf(holder: Holder): Clock {
    const { clock } = this
    const awake = (work: () => void) => () => holder.awake(work)
    return {
      nowMs: clock.nowMs,
      steadyMs: clock.steadyMs,
      appMs: clock.appMs,
      after: (ms, work) => clock.after(ms, awake(work)),
      due: (ms, work, mostMs) => clock.due(ms, awake(work), mostMs),
      every: (ms, work) => {
        const timer = clock.every(ms, () => {
          if (!holder.isAlive) clock.cancel(timer)
          else if (!holder.isFrozen) work()
        })
        return timer
      },
      cancel: (timer) => clock.cancel(timer),
      turn: (work) => clock.turn(awake(work)),
    }
  }

  async execute(): Promise<StoredResult> {
    let finding: string | null = null
    try {
      this.#start()
      this.#startOthers()
      this.#act()
      while (this.clock.steps < this.#steps) await this.#step()
      await this.#settle()
    } catch (error) {
      if (!(error instanceof Finding)) throw error
      finding = error.message
    }
    return { seed: this.#seed, finding, steps: this.clock.steps, events: this.#events, processes: this.#started }
  }

  async #step(): Promise<void> {
    this.clock.step()
    // What has been promised goes on.
    await new Promise(setImmediate)
    if (this.#failure !== null) throw this.#failure
  }

  readonly failed = (error: unknown): void => {
    this.#failure ??= error
  }

  /** An assertion of the store itself has spoken. */
  broken(message: string): void {
    this.failed(new Finding(message))
  }

  judge(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.failed(error)
    }
  }

  // ── what happens ──────────────────────────────────────────────────────────

  #start(): void {
    const { draw, plan } = this
    const isFirst = this.#started === 0
    const has = (n: number): boolean =>
      isFirst ? n === 0 || n < plan.groups.length - Number(plan.isFirstLacking) : !draw.is(plan.lacking)
    const groups = plan.groups.filter((_, n) => this.isHealed || has(n))
    const process = new SimulatedProcess(this, ++this.#started, groups, draw.is(plan.remote))
    this.tell(() => `process ${process.number} starts with ${groups.map(({ group }) => group).join(' ')}`)
    this.#processes.add(process)
    process.start().catch(this.failed)
  }

  /** Others come once the first one has told whom events wait for. */
  #startOthers(): void {
    if (!this.plan.isFirstLacking && !this.plan.groups.every(({ group }) => this.#isStored(group)))
      return this.clock.in(20, () => this.#startOthers())
    this.#areKnown = true
    for (let n = 1; n < this.plan.processes; n++) this.clock.in(this.draw.between(1, 300), () => this.#start())
  }

  get #up(): SimulatedProcess[] {
    return [...this.#processes].filter(({ isUp, isEnding, isFrozen }) => isUp && !isEnding && !isFrozen)
  }

  /** Where somebody can change what is stored. */
  get #open(): SimulatedProcess[] {
    return this.#up.filter(({ durable }) => durable.isOpen)
  }

  isKnownDead(number: number): boolean {
    return this.#ended.has(number)
  }

  /** Others may have taken over what a process had that has stood still. */
  lookAfterStill(): void {
    for (const each of this.#processes) if (each.hasStoodStill && !each.isOut) this.#lookAfter(each)
  }

  /** It ends in order: nothing more of it begins, and what it has not ended is for others. */
  lanesEnded(process: SimulatedProcess): void {
    if (!this.#isShared || process.isOut) return
    process.isOut = true
    this.#endedEarly(process)
    if (this.#hasTables) this.oracle.processGone(process)
  }

  #lookAfter(process: SimulatedProcess): void {
    const { member } = process.memory
    if (member === 0 || this.#has('SELECT 1 FROM heddle_member WHERE id = ?', member)) return
    this.tell(() => `process ${process.number} is taken over`)
    process.isOut = true
    this.#endedEarly(process)
    this.oracle.processGone(process)
  }

  /** It has found that others have taken over: it ends. */
  lost(process: SimulatedProcess): void {
    if (!process.hasStoodStill)
      this.failed(new Finding(`process ${process.number} was taken over, and it has never stood still`))
    process.later(this.draw.below(100), () => this.#kill(process))
  }

  #act(): void {
    if (this.isHealed) return
    try {
      if (this.#areKnown || this.plan.processes === 1) this.#do(this.draw.of(this.plan.deeds))
      if (this.#turnDraw.is(this.plan.shares?.crowds ?? 0)) this.#crowd()
      if (this.#workDraw.is(this.plan.paused)) void this.#pause().catch(this.failed)
      if (this.plan.trees !== null && this.#treeDraw.is(this.plan.trees)) void this.#cancelTree().catch(this.failed)
    } catch (error) {
      this.failed(error)
    }
    this.clock.in(this.draw.below(this.plan.pauseMs), () => this.#act())
  }

  #do(deed: Deed): void {
    const { draw } = this
    const up = this.#up
    const lanes = [...this.#processes].flatMap(({ isFrozen, ready }) => (isFrozen ? [] : ready))
    switch (deed) {
      case 'publish':
        if (lanes.length > 0) void this.publish(draw.of(lanes), null)
        return
      case 'killLane':
        return lanes.length > 0 ? draw.of(lanes).die() : undefined
      case 'kill':
        return this.#processes.size > 0 ? this.#kill(draw.of([...this.#processes])) : undefined
      case 'stop':
        return up.length > 0 ? this.#stop(draw.of(up)) : undefined
      case 'freeze':
        return up.length > 0 ? this.#freeze(draw.of(up), draw.of([50, 300, 2000, 9000, 17_000])) : undefined
      case 'jump': {
        const ms = draw.of([-60_000, -500, 500, 60_000])
        this.tell(() => `the clock is set by ${ms} ms`)
        return this.clock.jump(ms)
      }
      case 'outage':
        this.tell(() => 'the database is away')
        this.database.isAway = true
        return this.clock.in(draw.is(this.plan.longOutages) ? 17_000 : draw.between(50, 3000), () => {
          this.database.isAway = false
          this.#pauses.awayMs = this.clock.steadyMs()
          this.tell(() => 'the database is back')
        })
      case 'subscribe':
        return this.#subscribe(up)
      case 'cancel':
        void this.#cancel().catch(this.failed)
        return
      case 'letter':
        void this.#toLetter().catch(this.failed)
    }
  }

  /** Somebody has many events. */
  #crowd(): void {
    const lanes = [...this.#processes].flatMap(({ isFrozen, ready }) => (isFrozen ? [] : ready))
    if (lanes.length === 0) return
    const lane = this.#turnDraw.of(lanes)
    const of = this.#turnDraw.below(this.plan.shares!.owners)
    const priority = this.#priority(this.plan.shares!)
    for (let left = CROWD; left > 0 && lane.isAlive; left--) void this.publish(lane, null, { of, priority })
  }

  #subscribe(up: readonly SimulatedProcess[]): void {
    const lacking = up.flatMap((process) =>
      this.plan.groups.filter((group) => !process.groups.includes(group)).map((group) => ({ process, group })),
    )
    if (lacking.length === 0) return
    const { process, group } = this.draw.of(lacking)
    this.tell(() => `process ${process.number} subscribes for ${group.group}`)
    process.subscribe(group)
  }

  #freeze(process: SimulatedProcess, ms: number): void {
    if (!process.isAlive || process.isEnding) return
    if (this.database.isWriting(process)) this.clock.in(1, () => this.#freeze(process, ms))
    else process.freeze(ms)
  }

  #kill(process: SimulatedProcess): void {
    if (!process.isAlive) return
    this.tell(() => `process ${process.number} is killed`)
    this.#gone(process)
  }

  #gone(process: SimulatedProcess): void {
    process.kill()
    this.#processes.delete(process)
    this.clock.in(SENT_MS, () => this.#over(process))
    this.clock.in(SENT_MS + this.draw.between(1, this.draw.of([100, 2000])), () => this.#start())
  }

  /** That a process has ended is known when what it had sent is done. */
  #over(process: SimulatedProcess): void {
    if (this.database.isBusy(process)) return this.clock.in(1, () => this.#over(process))
    if (!process.isRemote) this.#ended.add(process.number)
    this.#endedEarly(process)
    if (this.#hasTables && !process.isOut) this.judge(() => this.oracle.processGone(process))
  }

  /** In order. */
  #stop(process: SimulatedProcess): void {
    this.tell(() => `process ${process.number} is told to end`)
    const ended = (): void => {
      if (!process.isAlive) return
      this.tell(() => `process ${process.number} has ended`)
      this.#gone(process)
    }
    process.stop().then(ended).catch(this.failed)
  }

  get #hasTables(): boolean {
    return this.#has("SELECT 1 FROM sqlite_master WHERE name = 'heddle_dead'")
  }

  /** Its process may die of it. */
  mayKillProcess(lane: StoredLane, id: string, group: string): boolean {
    const delivery = `${id} ${group}`
    const killed = this.#poisons.get(delivery)
    if (killed === undefined) return false
    this.#poisons.set(delivery, killed + 1)
    this.tell(() => `process ${lane.home.number} dies of ${id} for ${group}`)
    if (killed >= KILLED_MAX) this.failed(new Finding(`${killed + 1} processes have died of ${id} for ${group}`))
    this.#kill(lane.home)
    return true
  }

  /** A dead letter kills nobody. */
  cured(id: string, group: string): void {
    this.#poisons.delete(`${id} ${group}`)
  }

  mayKillLane(lane: StoredLane): boolean {
    if (this.isHealed || !this.draw.is(this.plan.rates.laneDeath)) return !lane.isAlive
    lane.die()
    return true
  }

  /** @param share whose the event is; default: chance */
  async publish(
    lane: StoredLane,
    parent: EventFrame | null,
    share: { of: number; priority: string } | null = null,
  ): Promise<void> {
    const { draw, plan, oracle } = this
    const id = this.#idOf(++this.#events)
    const event = draw.of(['a.b', 'c.d'])
    const key = draw.is(plan.keyed) ? `k${draw.below(plan.keys)}` : null
    const unique = key === null && draw.is(plan.unique) ? this.#unique() : null
    const json = this.#payload(share?.of ?? null)
    const shares =
      plan.shares === null ? '' : lane.home.sharesOf(event, json, share?.priority ?? this.#priority(plan.shares))
    const frame: EventFrame = {
      id,
      ...this.trees.published(id, parent),
      event,
      emitter: 'shop.Sell',
      requestId: null,
      key,
      trace: '',
      payloadKeys: 'n',
      timestampMs: this.clock.nowMs(),
      // What waits for its time has no order with what does not.
      delayMs: key === null && draw.is(plan.delayed) ? draw.between(1, draw.of([500, 2000, 45_000])) : 0,
      ttlMs: unique === null && draw.is(plan.mortal) ? draw.between(1, 500) : 0,
      unique,
      shares,
      seq: 0,
      subscriber: 0,
      attempt: 0,
      beginBy: 0,
      payload: json,
    }
    const { payload, timestampMs, delayMs, ttlMs } = frame
    const expiresMs = ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs
    const groups = plan.groups.filter((each) => each.event === event)
    const names = groups.map(({ group }) => group)
    oracle.asked({ id, key, payload, expiresMs }, groups, (group) => this.#isKnown(group, lane.home))
    this.turns.asked(id)
    const fate = this.trees.fateOf(id)
    if (fate !== 'is delivered') this.#mayBeGone([id])
    // Others hear of it a little later.
    if (fate === 'never begins' && plan.processes === 1) oracle.never(id)
    const asked = unique === null ? null : this.uniques.asked(event, { id, payload, unique }, names, lane)
    for (const { group } of groups) if (draw.is(plan.rates.poison)) this.#poisons.set(`${id} ${group}`, 0)
    this.tell(
      () =>
        `${id} ${event} is published${key === null ? '' : `, key ${key}`}${unique === null ? '' : `, ${unique.name} while ${unique.while}${unique.replaces ? ', replaces' : ''}`}${frame.delayMs > 0 ? `, in ${frame.delayMs} ms` : ''}`,
    )
    // Another may come before it is stored.
    const told = groups.filter((each) => lane.home.groups.includes(each))
    if (unique === null && this.#workDraw.is(plan.followed)) this.followers.follow(id)
    try {
      const answer = await lane.publish(frame, draw.is(plan.rates.slow))
      if (asked !== null) return this.#answered(asked, answer, lane)
      if (lane.isAlive && fate === 'is delivered' && this.trees.fateOf(id) === fate) {
        oracle.accepted(id)
        this.followers.accepted(id)
        if (key === null && delayMs === 0 && ttlMs === 0) this.#waitForTurn(frame, told)
      }
      for (const { group } of groups) if (!this.#isStored(group)) this.#early.push({ id, group, process: lane.home })
      this.tell(() => `${id} is accepted`)
    } catch {
      this.tell(() => `${id} is refused`)
      oracle.refused(id)
      if (asked !== null) this.uniques.refused(asked)
    }
  }

  #payload(owner: number | null): string {
    const { shares } = this.plan
    if (shares === null) return `{"n":${this.#events}}`
    const of = owner ?? this.#turnDraw.below(shares.owners)
    // Of no text and no number nobody knows whose it is.
    return this.#turnDraw.is(0.05) ? `{"n":${this.#events},"of":[]}` : `{"n":${this.#events},"of":"o${of}"}`
  }

  #priority({ urgent }: SharePlan): string {
    return this.#turnDraw.is(urgent) ? this.#turnDraw.of(['0', '2']) : NORMAL
  }

  #waitForTurn({ id, shares }: EventFrame, groups: readonly GroupPlan[]): void {
    for (const each of groups) {
      const { group } = each
      if (this.#takesTurns(each) && !this.#poisons.has(`${id} ${group}`))
        this.turns.waits(id, group, shareIn(shares, group))
    }
  }

  /** One process has all slots: with several, each takes turns among its own. And nothing else holds up one of its events. */
  #takesTurns({ isFair, limit, permits }: GroupPlan): boolean {
    const { processes, paused } = this.plan
    return processes === 1 && paused === 0 && isFair && limit?.isByShare !== true && permits === null
  }

  #groupOf(group: string): GroupPlan {
    return this.plan.groups.find((each) => each.group === group)!
  }

  /** The hub of a process gets an event for a group. */
  taken(
    { id, key, unique, expiresMs, shares }: HubEvent,
    of: readonly Share[] | null,
    process: SimulatedProcess,
  ): void {
    const [share] = of ?? []
    if (share === undefined || key !== null || unique !== null || expiresMs !== 0 || shares === '') return
    const isNew = share.attempt === 1 && share.deaths === 0 && share.dueMs === 0
    if (isNew && this.#takesTurns(this.#groupOf(share.group))) this.turns.taken(id, share.group, shares, process)
  }

  turnBegun({ id, shares }: EventFrame, group: string, process: SimulatedProcess): void {
    this.turns.begun(id, this.#groupOf(group), shares, process)
  }

  /** A delivery is on its way to a lane. */
  sent(process: SimulatedProcess, { id, event, shares, unique }: EventFrame, group: string): void {
    if (!process.isOut) this.#pauses.begins(id, group, process, this.clock.steadyMs())
    const { limit } = this.#groupOf(group)
    // One that others may replace was counted before it was noted that it begins.
    if (limit === null || unique !== null) return
    const { isByShare } = limit
    const ofProcess = this.#isShared ? '' : `, process ${process.number}`
    const name = `${event} for ${group}${isByShare ? ` of ${valueIn(shares, 0)}` : ''}${ofProcess}`
    this.#limits.begins(name, limit, { atMs: this.clock.steadyMs(), countedMs: process.limitAnswers.countedMs })
  }

  /** A handler is at work. */
  atWork(lane: StoredLane, { event, shares, unique }: EventFrame, group: string, handling: Handling): void {
    const { permits } = this.#groupOf(group)
    // One that others may replace has its permit before it is known whose it is in the end.
    if (permits === null || (permits.isByShare && unique !== null)) return
    const { home } = lane
    const ofProcess = this.#isShared ? '' : `, process ${home.number}`
    const name = `${event} for ${group}${permits.isByShare ? ` of ${valueIn(shares, 0)}` : ''}${ofProcess}`
    const isOver = (): boolean => !lane.isAlive || !home.isAlive || home.isOut || handling.state !== 'running'
    this.#permits.begins(name, permits, { isOver })
  }

  /** So much longer a handler takes that reports, or of which few may run, milliseconds. */
  moreMs(group: string): number {
    const { reports, permits } = this.#groupOf(group)
    return reports === 'nothing' && permits === null ? 0 : this.#workDraw.of([0, 30, 150, 400])
  }

  /** Null: its handler reports nothing. */
  reportsOf({ id, unique }: EventFrame, group: string): Told | null {
    if (unique !== null || this.#groupOf(group).reports === 'nothing') return null
    return this.followers.begins(id, group)
  }

  /** Chunks that a handler emits at a time. */
  chunks(): number {
    return this.#workDraw.below(3)
  }

  resultMsOf(group: string): number | undefined {
    return this.#groupOf(group).reports === 'result' ? RESULT_MS : undefined
  }

  /** Pauses a group, or resumes it. */
  async #pause(): Promise<void> {
    const up = this.#open
    const { group } = this.#workDraw.of(this.plan.groups)
    if (up.length === 0 || this.#isPausing(group)) return
    const isPaused = this.#pauses.stateOf(group) !== 'paused'
    // It lasts for some time, else nobody need hear of it.
    if (!isPaused && this.#workDraw.is(0.7)) return
    await this.#setPaused(this.#workDraw.of(up), group, isPaused)
  }

  /** What a process had sent when it ended may still be done. */
  #isPausing(group: string): boolean {
    const process = this.#pausing.get(group)
    return process !== undefined && (process.isAlive || this.database.isBusy(process) || this.database.hasWriter)
  }

  /** As `event_bus.pause` and `resume` do it. */
  async #setPaused(process: SimulatedProcess, group: string, isPaused: boolean): Promise<void> {
    const { hub, durable } = process
    const { pauses } = durable.store!
    const { event } = this.#groupOf(group)
    this.#pausing.set(group, process)
    this.#pauses.changing(group)
    this.tell(() => `${group} is to be ${isPaused ? 'paused' : 'resumed'} in process ${process.number}`)
    process.operations++
    try {
      await pauses.load()
      if (hub.pauses.has(event, group) !== isPaused)
        await pauses.change([{ event, group, sinceMs: this.clock.nowMs() }], isPaused)
      this.#pauses.changed(group, isPaused, process, this.clock.steadyMs())
      this.tell(() => `${group} is ${isPaused ? 'paused' : 'resumed'}`)
    } catch (error) {
      this.tell(() => `${group} is perhaps ${isPaused ? 'paused' : 'resumed'}: ${String(error)}`)
    }
    process.operations--
    this.#pausing.delete(group)
  }

  #resumeAll(): void {
    const up = this.#open
    for (const { group } of this.plan.groups)
      if (up.length > 0 && this.#pauses.stateOf(group) !== 'running' && !this.#isPausing(group))
        void this.#setPaused(this.#workDraw.of(up), group, false).catch(this.failed)
  }

  get #arePaused(): boolean {
    return this.plan.groups.some(({ group }) => this.#pauses.stateOf(group) !== 'running')
  }

  #unique(): UniqueEvent {
    const { draw } = this
    const name = `u${draw.below(3)}`
    const isWaiting = name !== 'u0'
    return { name, while: isWaiting ? 'waiting' : 'running', replaces: isWaiting && draw.is(0.5) }
  }

  #answered(asked: Asked, answer: string, lane: StoredLane): void {
    const { oracle } = this
    const { id } = asked
    this.tell(() => (answer === id ? `${id} is accepted` : `${id} is not taken: ${answer} is there`))
    // A process that is gone may have answered what its server did not do.
    if (!lane.isAlive) return this.uniques.refused(asked)
    this.judge(() => {
      const must = this.uniques.answered(asked, answer)
      if (answer === id) oracle.accepted(id, (group) => must.has(group))
      else oracle.never(id)
    })
    for (const group of asked.groups) if (!this.#isStored(group)) this.#early.push({ id, group, process: lane.home })
  }

  /** Events wait for a group that has been here, also while it is not. */
  #isKnown({ group }: GroupPlan, process: SimulatedProcess): boolean {
    if (!this.database.hasWriter && this.#isStored(group)) this.#known.add(group)
    return process.groups.some((each) => each.group === group) || this.#known.has(group)
  }

  /** Its groups may never have been stored: whoever comes next may lack them. */
  #endedEarly(gone: SimulatedProcess): void {
    this.uniques.threadsEnded()
    for (const { id, group, process } of this.#early)
      if (process === gone && !this.#isStored(group)) this.oracle.mayMiss(id, group)
    this.#early = this.#early.filter(({ process }) => process !== gone)
  }

  #isStored(group: string): boolean {
    return this.#hasTables && this.#has('SELECT 1 FROM heddle_group WHERE grp = ?', group)
  }

  async #cancel(): Promise<void> {
    const open = [...this.#processes].filter(({ durable, isFrozen }) => durable.isOpen && !isFrozen)
    const ids = this.oracle.openIds
    if (open.length === 0 || ids.length === 0) return
    const process = this.draw.of(open)
    const id = this.draw.of(ids)
    this.tell(() => `${id} is taken back in process ${process.number}`)
    this.oracle.cancelling(id)
    this.followers.cancelling(id)
    for (const { group } of this.plan.groups) this.turns.gone(id, group)
    process.operations++
    const cancelled = await process.durable.cancel(id).catch(() => null)
    process.operations--
    if (cancelled === null || !process.isAlive) return
    this.tell(() => `${id} was taken back: ${cancelled.waiting} waited, ${cancelled.running} ran`)
    // Others hear of it a little later.
    if (this.plan.processes === 1) this.oracle.cancelled(id)
  }

  /** Of the event, or of one above it. */
  async #cancelTree(): Promise<void> {
    const open = [...this.#processes].filter(({ durable, isFrozen }) => durable.isOpen && !isFrozen)
    const { openIds, letterIds } = this.oracle
    const ids = letterIds.length > 0 && this.#treeDraw.is(0.5) ? letterIds : openIds
    if (open.length === 0 || ids.length === 0) return
    const process = this.#treeDraw.of(open)
    const id = this.#treeDraw.of(this.trees.chain(this.#treeDraw.of(ids)))
    this.tell(() => `${id} is taken back with all that it has caused, in process ${process.number}`)
    const { cancel, ids: before } = this.trees.cancelling(id)
    this.#mayBeGone(before)
    process.operations++
    const cancelled = await process.durable.cancel({ id, causedToo: true }).catch(() => null)
    process.operations--
    // What it has caused meanwhile is meant, too.
    const below = this.trees.below(id)
    this.#mayBeGone(below)
    if (cancelled === null || !process.isAlive) return
    this.trees.answered(cancel)
    this.tell(() => `${id} was taken back with all: ${cancelled.waiting} waited, ${cancelled.running} ran`)
    if (this.plan.processes === 1) for (const each of below) this.oracle.cancelled(each)
  }

  #mayBeGone(ids: readonly string[]): void {
    for (const id of ids) {
      this.oracle.cancelling(id)
      this.followers.cancelling(id)
      for (const { group } of this.plan.groups) this.turns.gone(id, group)
    }
  }

  #idOf(number: number): string {
    return this.plan.trees === null ? `e${number}` : treeId(number)
  }

  async #toLetter(): Promise<void> {
    const open = [...this.#processes].filter(({ durable, isFrozen }) => durable.isOpen && !isFrozen)
    if (open.length === 0) return
    const process = this.draw.of(open)
    process.operations++
    await this.#toLetterIn(process)
    process.operations--
  }

  async #toLetterIn(process: SimulatedProcess): Promise<void> {
    const [letter] = await process.letters.list({ limit: 1000 }).catch(() => [])
    if (letter === undefined) return
    const { id, event_id: event, subscriber } = letter
    // One that is there twice, because a process died before it had ended the first delivery, is deleted.
    const isReplay = this.oracle.hasTold(event, subscriber) && this.draw.is(0.6)
    this.cured(event, subscriber)
    this.followers.letter(event, subscriber)
    this.tell(() => `the letter of ${event} for ${subscriber}: ${isReplay ? 'replay' : 'delete'}`)
    if (isReplay && this.draw.is(0.3)) {
      const payload = `{"n":0,"edited":${this.draw.below(1000)}}`
      this.oracle.editing(event, subscriber, payload)
      const wasEdited = await process.letters.edit(id, payload, 'n\0edited').catch(() => true)
      // Somebody else has replayed or deleted it meanwhile.
      if (!process.isAlive || !wasEdited) return
    }
    if (isReplay) this.oracle.replaying(event, subscriber, process)
    else this.oracle.deleting(event, subscriber, process)
    const replay = isReplay ? this.trees.replaying(event) : null
    const isDone = await (isReplay ? process.letters.replay(id) : process.letters.delete(id)).catch(() => false)
    if (replay !== null && isDone && process.isAlive) {
      this.trees.answered(replay)
      // A replay after the cancel is a new will.
      if (this.plan.trees !== null && this.trees.fateOf(event) === 'is delivered')
        this.oracle.replayed(event, subscriber)
    }
    if (process.isAlive) this.oracle.settled(event, subscriber)
    if (isReplay && !this.isHealed && this.draw.is(this.plan.rates.killedReplay)) this.#kill(process)
  }

  // ── the end ───────────────────────────────────────────────────────────────

  async #settle(): Promise<void> {
    const { clock, database } = this
    this.isHealed = true
    database.isAway = false
    this.#pauses.awayMs = clock.steadyMs()
    this.tell(() => 'all heals')
    this.#followOld()
    // What has waited for a group that was not here goes on, and what was stored for a time that was set back since. Else those that are there must find their way, too.
    const { lacking, isFirstLacking, deeds } = this.plan
    if (lacking > 0 || isFirstLacking || deeds.includes('jump') || this.draw.is(0.5))
      for (const process of [...this.#processes]) this.#kill(process)
    // What is for later comes by the clock, however far back that was set.
    const backMs = Math.max(0, this.#aheadMs - (clock.nowMs() - clock.steadyMs()))
    const untilMs = clock.steadyMs() + backMs + HEAL_MS
    const resumeMs = clock.steadyMs() + this.#workDraw.of([0, 3000])
    for (let quiet = 0; quiet < 3; ) {
      const nextMs = clock.steadyMs() + 500
      while (clock.steadyMs() < nextMs) await this.#step()
      if (!this.#hasTables || this.#processes.size === 0) continue
      if (clock.steadyMs() > resumeMs) this.#resumeAll()
      const left = database.all<{ deliveries: number; letters: number }>(
        "SELECT (SELECT count(*) FROM heddle_delivery) AS deliveries, (SELECT count(*) FROM heddle_dead WHERE replay = '') AS letters",
      )[0]!
      if (clock.steadyMs() > untilMs)
        throw new Finding(
          `It does not end: ${JSON.stringify(left)}, ${this.#counted} counted, ${this.#pending} pending; ${this.oracle.openOnes}${this.#notOver}`,
        )
      void this.#toLetter().catch(this.failed)
      const { open } = this.followers
      const isQuiet =
        left.deliveries + left.letters + this.#counted + this.#pending + open.length === 0 && !this.#arePaused
      quiet = isQuiet ? quiet + 1 : 0
    }
    this.uniques.threadsEnded()
    this.oracle.end()
    for (const { hub, memory } of this.#processes) {
      if (memory.stored !== 0 || memory.parked !== 0)
        throw new Finding(`${memory.stored} stored and ${memory.parked} parked events are counted, and there are none`)
      if (!hub.blockedKeys.isEmpty) throw new Finding('A key is blocked, and there is no dead letter')
    }
  }

  /** Somebody comes when an event may have ended long ago. */
  #followOld(): void {
    const { followed } = this.plan
    if (followed === 0) return
    for (let left = OLD_FOLLOWED; left > 0 && this.#events > 0; left--) {
      const id = this.#idOf(this.#workDraw.between(1, this.#events))
      if (this.oracle.groupsOf(id).length > 0 && !this.uniques.has(id)) this.followers.follow(id)
    }
  }

  get #notOver(): string {
    const { open } = this.followers
    return `${open.length === 0 ? '' : `; followed: ${open.join(', ')}`}${this.#arePaused ? '; some are paused' : ''}`
  }

  get #counted(): number {
    return [...this.#processes].reduce((sum, { memory }) => sum + memory.stored, 0)
  }

  get #pending(): number {
    return [...this.#processes].reduce((sum, { hub }) => sum + hub.pending, 0)
  }
}
