/** One run: the hub as it is, between publishers and lanes that are simulated. First faults, then all heals and everything must end. */
import { codeOf, messageOf } from '../../src/core/errors/description.ts'
import type { Hub } from '../../src/primary/events/hub.ts'
import type { LaneSubscribers } from '../../src/primary/events/lane-subscribers.ts'
import type { EventFrame } from '../../src/transport/frames/event-frame.ts'
import { CrashCounts, type Moment, type Step } from './crashes.ts'
import { Draw } from './draw.ts'
import { SimulatedLanes } from './lanes.ts'
import { Finding, Oracle } from './oracle.ts'
import { type Deed, EVENTS, type GroupPlan, type Plan, planOf } from './plan.ts'
import { SimulatedClock } from './time.ts'

/** The classes that a run is made of: those of the project, or with a fault planted in them. */
export interface Engine {
  Hub: typeof Hub
  LaneSubscribers: typeof LaneSubscribers
}

export interface RunOptions {
  seed: number
  /** Then all heals. */
  steps: number
  /** What is left out of the plan. */
  without?: ReadonlySet<Deed | keyof Plan['rates']>
  /** Told what happens, a line each. */
  tell?: (line: string) => void
}

export interface RunResult {
  readonly seed: number
  readonly plan: Plan
  readonly finding: string | null
  readonly steps: number
  readonly crashes: CrashCounts
  readonly events: number
  /** Whether each request has been answered, one way or the other: known a turn later. */
  readonly requests: Promise<number>
}

/** All must have ended by then, by the run's own clock, once nothing goes wrong any more. */
const HEAL_MS = 300_000
const LOOK_MS = 500
/** Steps without end at one time are a fault, too. */
const HEAL_STEPS = 100_000

export class Run {
  readonly clock = new SimulatedClock()
  readonly draw: Draw
  readonly plan: Plan
  readonly hub: Hub
  readonly oracle: Oracle
  readonly lanes: SimulatedLanes
  readonly crashCounts = new CrashCounts()
  isFaulty = true
  readonly #options: RunOptions
  readonly #poison = new Set<string>()
  readonly #paused = new Set<string>()
  #events = 0
  /** What a listener has found. */
  #found: unknown = null
  #requests = 0
  #answered = 0

  constructor(engine: Engine, options: RunOptions) {
    this.#options = options
    this.draw = new Draw(options.seed)
    this.plan = planWithout(planOf(this.draw), options.without)
    this.hub = new engine.Hub({
      maxQueue: this.plan.maxQueue,
      maxDeadBytes: this.plan.maxDeadBytes,
      clock: this.clock,
      chance: this.draw,
      onQuarantine: (isWanted) => this.lanes.wantQuarantine(isWanted),
      onQuarantineUsed: () => this.lanes.renewQuarantine(),
      log: (_, message) => this.tell(() => `log: ${message}`),
    })
    const { hub } = this
    this.oracle = new Oracle({
      nowMs: this.clock.nowMs,
      latestMs: this.clock.latestMs,
      steadyMs: this.clock.steadyMs,
      hasLetter: (id, group) =>
        hub.deadLetters.list().some(({ event_id, subscriber }) => event_id === id && subscriber === group),
      isPaused: (group) => this.#paused.has(group),
      hasRoomForLetters: this.plan.maxDeadBytes > 1 << 20,
      get lettersDropped() {
        return hub.deadLetters.dropped.count
      },
    })
    hub.records.addFailureListener(({ event_id, subscriber }) => {
      this.tell(() => `${event_id} is a dead letter of ${subscriber}`)
      // The hub logs what a listener throws, and goes on.
      try {
        this.oracle.letter(event_id, subscriber)
      } catch (finding) {
        this.#found ??= finding
      }
    })
    this.lanes = new SimulatedLanes(this, new engine.LaneSubscribers(hub))
  }

  tell(line: () => string): void {
    this.#options.tell?.(`${String(this.clock.steadyMs()).padStart(7)}  ${line()}`)
  }

  /** Drawn: a lane dies here. */
  crashes(step: Step, moment: Moment): boolean {
    if (!this.isFaulty) return false
    // What happens seldom is met seldom: it gets its share.
    const rarity = step === 'read' || step === 'handle' || step === 'answer' ? 1 : 12
    if (!this.draw.is(this.plan.rates.crash * rarity)) return false
    this.crashCounts.add(step, moment)
    return true
  }

  isPoison(id: string): boolean {
    return this.#poison.has(id)
  }

  execute(): RunResult {
    let finding: string | null = null
    try {
      this.lanes.start()
      this.#act()
      while (this.clock.steps < this.#options.steps) this.#step()
      this.#heal()
      this.#settle()
      this.#end()
    } catch (error) {
      if (!(error instanceof Finding)) throw error
      finding = error.message
    }
    const { clock, plan, crashCounts } = this
    return {
      seed: this.#options.seed,
      plan,
      finding,
      steps: clock.steps,
      crashes: crashCounts,
      events: this.#events,
      requests: new Promise((resolve) => setImmediate(() => resolve(this.#requests - this.#answered))),
    }
  }

  #step(): void {
    this.clock.step()
    if (this.#found !== null) throw this.#found
  }

  // ── what somebody does ────────────────────────────────────────────────────

  #act(): void {
    if (!this.isFaulty) return
    this.#do(this.draw.of(this.plan.deeds))
    this.clock.in(this.draw.below(this.plan.pauseMs), () => this.#act())
  }

  #do(deed: Deed): void {
    const { draw, lanes, clock } = this
    const lane = draw.of([...lanes.all])
    const { group } = draw.of(this.plan.groups)
    switch (deed) {
      case 'publish':
        return this.publish({})
      case 'request':
        return this.publish({ isRequest: true })
      case 'replay':
      case 'edit':
      case 'delete':
        return this.#toLetter(deed)
      case 'pause':
        this.#pause(group, true)
        return clock.in(draw.between(10, 1500), () => this.#pause(group, false))
      case 'kill':
        return lane?.die('at once')
      case 'freeze':
      case 'hold':
        return lane?.freeze(draw.of([50, 300, 2500]), deed === 'hold')
      case 'jump': {
        const ms = draw.of([-60_000, -500, 500, 60_000])
        this.tell(() => `the clock is set by ${ms} ms`)
        return clock.jump(ms)
      }
      case 'reload':
        return lanes.reload(this.plan.groups.filter(() => draw.is(0.9)))
      case 'subscribe':
        if (lane?.state === 'ready' && lane.isAlive) lanes.subscribe(lane, this.#temporaryGroup())
        return
      case 'unsubscribe':
        return void lanes.unsubscribe()
    }
  }

  #temporaryGroup(): GroupPlan {
    const like = this.draw.of(this.plan.groups)
    const group = this.lanes.newGroupName()
    return { ...like, group, event: this.draw.is(0.2) ? `of.${group}` : like.event }
  }

  #pause(group: string, isPaused: boolean): void {
    this.tell(() => `${group} is ${isPaused ? 'set aside' : 'taken up again'}`)
    if (isPaused) this.#paused.add(group)
    else this.#paused.delete(group)
    this.hub.pausePlugin(group, isPaused)
  }

  publish({ parent = null, isRequest = false }: { parent?: string | null; isRequest?: boolean }): void {
    const { draw, plan, hub, oracle } = this
    const id = `e${++this.#events}`
    const frame: EventFrame = {
      id,
      parentId: parent,
      ancestors: '',
      event: draw.of(EVENTS),
      emitter: 'shop.Sell',
      requestId: null,
      key: draw.is(plan.keyed) ? `k${draw.below(plan.keys)}` : null,
      trace: '',
      payloadKeys: 'n',
      timestampMs: this.clock.nowMs(),
      delayMs: draw.is(plan.delayed) ? draw.between(1, 400) : 0,
      ttlMs: draw.is(plan.mortal) ? draw.between(1, 300) : 0,
      unique: null,
      shares: '',
      seq: 0,
      subscriber: 0,
      attempt: 0,
      beginBy: 0,
      payload: `{"n":${this.#events}}`,
    }
    if (this.isFaulty && draw.is(plan.rates.poison)) this.#poison.add(id)
    const takers = [...this.lanes.present.values()].filter(({ plan: { event } }) => event === frame.event)
    const units = takers.flatMap(({ plan: group, lanes }) =>
      group.options.broadcast
        ? [...lanes].map(({ number }) => ({ group, unit: `${group.group}@${number}` }))
        : [{ group, unit: group.group }],
    )
    // Before: the first delivery may be sent at once.
    for (const { group, unit } of units) oracle.published(frame, group, unit)
    const { delayMs, ttlMs, key } = frame
    this.tell(() => {
      const more = `${key === null ? '' : `, key ${key}`}${delayMs > 0 ? `, in ${delayMs} ms` : ''}${ttlMs > 0 ? `, for ${ttlMs} ms` : ''}`
      return `${id} ${frame.event} is ${isRequest ? 'asked' : 'published'}${more}${this.#poison.has(id) ? ', and kills' : ''}`
    })
    const { pending } = hub
    const furthestBehind = Math.max(
      0,
      // What it handles counts beyond an eighth of the queue.
      ...hub
        .consumersOf(frame.event)
        .map(({ pending: all, queue }) => all - Math.min(queue.inFlight, Math.ceil(plan.maxQueue / 8))),
    )
    const refused = (error: unknown): void => {
      // By its code: a planted hub has classes of its own.
      if (codeOf(error) !== 'EVENT_BUS_FULL') throw error
      this.tell(() => `${id} is refused`)
      for (const { unit } of units) oracle.refused(id, unit)
      const free = plan.maxQueue * 0.9 - pending
      // A subscriber gets no more than what it leaves to others; what waits behind dead letters, a quarter of all.
      const isShareFull = furthestBehind >= free
      const mayBeFull =
        takers.length > free || isShareFull || (hub.blockedKeys.size > 0 && pending + takers.length > plan.maxQueue / 4)
      if (!mayBeFull) throw new Finding(`${id} for ${units.length} was refused at ${pending}: ${messageOf(error)}`)
    }
    if (isRequest && units.length > 0) return this.#request(frame, refused)
    try {
      hub.publish(frame, null)
    } catch (error) {
      refused(error)
    }
  }

  /** Its promise rejects a turn later: what it was refused for is asked of the budget before. */
  #request(frame: EventFrame, refused: (error: unknown) => void): void {
    const { hub } = this
    this.#requests++
    const { pending } = hub
    const wasTaken = hub.request(frame, null, this.draw.between(5, 500))
    const count = (): void => void this.#answered++
    wasTaken.then(count, count)
    // Only a delivery that waits or has been begun shows that it was taken.
    if (hub.pending === pending && !this.oracle.wasBegun(frame.id)) refused({ code: 'EVENT_BUS_FULL' })
  }

  #toLetter(deed: 'replay' | 'edit' | 'delete'): void {
    const letters = this.hub.deadLetters.list()
    if (letters.length > 0) this.#handleLetter(deed, this.draw.of(letters))
  }

  #handleLetter(
    deed: 'replay' | 'edit' | 'delete',
    letter: { id: string; event_id: string; subscriber: string },
  ): void {
    const { hub, oracle } = this
    const each = oracle.letterOf(letter.event_id, letter.subscriber)
    this.tell(() => `the letter of ${letter.event_id} for ${letter.subscriber}: ${deed}`)
    if (deed === 'replay') {
      // A broadcast's goes to any instance: nobody knows which.
      if (each === undefined || each.group.options.broadcast) return
      const undo = oracle.replaying(each)
      if (!hub.deadLetters.replay(letter.id)) undo()
    } else if (deed === 'edit') {
      if (each === undefined) return
      each.payload = `${each.payload.slice(0, -1)},"edited":${this.draw.below(10)}}`
      hub.deadLetters.edit(letter.id, each.payload, 'n\0edited')
    } else {
      if (each !== undefined) oracle.deleted(each)
      hub.deadLetters.delete(letter.id)
    }
    oracle.settled()
  }

  // ── the end ───────────────────────────────────────────────────────────────

  #heal(): void {
    this.isFaulty = false
    this.tell(() => 'all heals')
    for (const group of [...this.#paused]) this.#pause(group, false)
    this.lanes.heal(this.plan.groups)
  }

  /** Letters are replayed until there are none. Then nothing may be left. */
  #settle(): void {
    const { clock, hub, lanes } = this
    const untilMs = clock.steadyMs() + HEAL_MS
    const untilSteps = clock.steps + HEAL_STEPS
    for (let quiet = 0; quiet < 3; ) {
      let isLookDue = false
      clock.in(LOOK_MS, () => {
        isLookDue = true
      })
      while (!isLookDue) this.#step()
      if (clock.steadyMs() > untilMs || clock.steps > untilSteps)
        throw new Finding(
          `It does not end: ${hub.pending} pending, ${hub.queued} of them queued, ${hub.blockedKeys.size} keys blocked; ${this.oracle.openOnes}; ${[...hub.workloads()].map(({ group, pending }) => `${group} ${pending}`)}`,
        )
      while (lanes.unsubscribe());
      if (!lanes.isHealed || lanes.isReloading || !lanes.areUp) continue
      // What a lane had subscribed to as it drained is dropped with the next lane that comes or goes.
      lanes.changed()
      // A group that no lane has any more takes no replay.
      for (const letter of hub.deadLetters.list()) {
        const isKnown =
          lanes.present.has(letter.subscriber) && this.oracle.find(letter.event_id, letter.subscriber) !== undefined
        this.#handleLetter(isKnown && this.draw.is(0.7) ? 'replay' : 'delete', letter)
      }
      const isQuiet = hub.pending === 0 && hub.blockedKeys.isEmpty && lanes.quarantine === null
      quiet = isQuiet ? quiet + 1 : 0
    }
  }

  #end(): void {
    const { hub, oracle, lanes, clock } = this
    oracle.end()
    const nothing = (what: string, count: number): void => {
      if (count !== 0) throw new Finding(`${count} ${what} left`)
    }
    nothing('deliveries are', hub.pending + hub.unstored + hub.queued)
    nothing('replays that run are', hub.deadLetters.list({ replayed: true }).filter(isRunning).length)
    const consumers = [...hub.workloads()]
    for (const { group, pending, pendingBytes, queue } of consumers) {
      nothing(`deliveries of ${group} are`, pending)
      nothing(`bytes of ${group} are`, pendingBytes)
      nothing(`places of ${group} are`, queue.inFlight + queue.waiting.size)
      nothing(`keys of ${group} are`, queue.keyed.size)
    }
    const wanted = lanes.groups.map(({ group }) => group).toSorted()
    const there = consumers.map(({ group }) => group).toSorted()
    if (String(wanted) !== String(there)) throw new Finding(`${there} subscribe, and not ${wanted}`)
    for (const [event, { subscribers, emitters }] of Object.entries(hub.topology())) {
      const names = lanes.groups.filter((each) => each.event === event).map(({ group }) => group)
      if (String(subscribers.toSorted()) !== String(names.toSorted()))
        throw new Finding(`${subscribers} are the subscribers of ${event}, and not ${names}`)
      if (subscribers.length + emitters.length === 0) throw new Finding(`${event} is left, and nobody has it`)
    }
    hub.returnDelayed()
    hub.close()
    nothing('timers are', clock.timers)
  }
}

const isRunning = ({ replay }: { replay?: { outcome: string } }): boolean => replay?.outcome === 'running'

function planWithout(plan: Plan, without: RunOptions['without']): Plan {
  if (without === undefined) return plan
  const rates = { ...plan.rates }
  for (const name of Object.keys(rates) as (keyof Plan['rates'])[]) if (without.has(name)) rates[name] = 0
  return { ...plan, rates, deeds: plan.deeds.filter((deed) => !without.has(deed)) }
}
