/** A lane as the primary sees it, and the wire between: frames that come late, and are lost with the lane. */
import { type EventFrame, WANTS_REPLY } from '../../src/transport/frames/event-frame.ts'
import type { Moment, Step } from './crashes.ts'
import type { Attempt, Outcome } from './oracle.ts'
import type { GroupPlan } from './plan.ts'
import type { Run } from './run.ts'

export interface SimulatedSubscriber {
  readonly plan: GroupPlan
  readonly unit: string
}

interface Item {
  readonly id: number
  readonly frame: EventFrame
  readonly subscriber: number
  readonly attempt: Attempt
  readonly heldMs: number
}

/** Far more than any time limit. */
const FOR_EVER_MS = 1_000_000

export class SimulatedLane {
  readonly number: number
  readonly role: 'regular' | 'quarantine'
  readonly index: number
  state: 'starting' | 'ready' | 'draining' | 'dead' = 'starting'
  /** What the primary knows of its loop. */
  responsive = true
  /** How long a debugger has held it. */
  heldMs = 0
  deliveriesInFlight = 0
  /** The thread runs. */
  isAlive = true
  isFrozen = false
  /** As the primary knows them. */
  readonly subscribers: SimulatedSubscriber[] = []
  /** Those that have unsubscribed in the lane. */
  readonly left = new Set<number>()
  /** Deliveries that the primary has given it and that it has not answered, as the primary knows. */
  readonly items = new Map<number, Item>()
  readonly #run: Run
  readonly #unread: Item[] = []
  /** What it has written and the primary has not read. */
  #written: (() => unknown)[] = []
  readonly #abandoned = new Set<number>()
  /** What happens when its loop turns again. */
  #postponed: (() => void)[] = []

  constructor(run: Run, number: number, index: number, role: 'regular' | 'quarantine') {
    this.#run = run
    this.number = number
    this.index = index
    this.role = role
  }

  // ── the primary's side ────────────────────────────────────────────────────

  sendDelivery(id: number, frame: EventFrame): boolean {
    const { draw, plan, oracle } = this.#run
    if (this.state === 'dead') return false
    if (this.#run.isFaulty && draw.is(plan.rates.full)) return false
    const { unit } = this.subscribers[frame.subscriber]!
    const isQuarantine = this.role === 'quarantine'
    const attempt = oracle.sent(frame, unit, { number: this.number, isQuarantine })
    this.#run.tell(() => `${frame.id} is sent to lane ${this.number} for ${unit}, attempt ${frame.attempt & 0xffff}`)
    const item = { id, frame: { ...frame }, subscriber: frame.subscriber, attempt, heldMs: this.heldMs }
    this.items.set(id, item)
    this.#unread.push(item)
    this.deliveriesInFlight++
    this.#later(draw.below(3), () => this.#read())
    return true
  }

  abandonDelivery(id: number): void {
    const item = this.items.get(id)!
    this.items.delete(id)
    this.#run.tell(() => `${item.frame.id} is given up in lane ${this.number}`)
    this.#run.oracle.givenUp(item.attempt, this.heldMs - item.heldMs)
    if (this.state === 'dead') return
    this.#abandoned.add(id)
    this.deliveriesInFlight--
  }

  /** Handlers here do not listen to their signals. */
  post(): void {}

  #answered(item: Item, outcome: Outcome, reply: boolean): void {
    const { hub, oracle } = this.#run
    if (!this.#abandoned.delete(item.id)) this.deliveriesInFlight--
    this.items.delete(item.id)
    oracle.answered(item.attempt, outcome)
    if (outcome !== 'delivered')
      hub.failed(item.id, {
        message: 'not now',
        ...(outcome === 'unrecoverable' && { unrecoverable: true }),
        ...(outcome === 'away' && { away: true }),
      })
    else if (reply) hub.reply(item.id, '{}')
    else hub.delivered(item.id)
    oracle.settled()
  }

  /** Reads what the thread wrote before it ended. @returns what it never began */
  dispose(): Set<number> {
    this.isAlive = false
    this.state = 'dead'
    const written = this.#written
    this.#written = []
    for (const each of written) each()
    this.deliveriesInFlight = 0
    return new Set(this.#unread.map(({ id }) => id))
  }

  // ── the lane's side ───────────────────────────────────────────────────────

  /** Its thread may end here. @returns true when it does */
  mayCrash(step: Step, moment: Moment): boolean {
    if (!this.isAlive) return true
    if (!this.#run.crashes(step, moment)) return false
    this.die(`${moment} ${step}`)
    return true
  }

  die(where: string): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.#run.tell(() => `lane ${this.number} dies ${where}`)
    this.#run.lanes.died(this)
  }

  freeze(ms: number, isHeld: boolean): void {
    const { clock, draw } = this.#run
    if (!this.isAlive || this.isFrozen) return
    this.isFrozen = true
    this.#run.tell(() => `lane ${this.number} ${isHeld ? 'is held' : 'stands still'} for ${ms} ms`)
    clock.in(draw.below(90), () => {
      if (this.isFrozen) this.responsive = false
    })
    clock.in(ms, () => {
      this.isFrozen = false
      this.responsive = true
      if (isHeld) this.heldMs += ms
      const postponed = this.#postponed
      this.#postponed = []
      for (const each of postponed) this.#later(0, each)
    })
  }

  /** Runs in the thread, if that is still there by then. */
  #later(ms: number, run: () => void): void {
    this.#run.clock.in(ms, () => {
      if (!this.isAlive) return
      if (this.isFrozen) this.#postponed.push(run)
      else run()
    })
  }

  /** Writes something for the primary, which reads all in its order. */
  write(read: () => void): void {
    this.#written.push(read)
    this.#run.clock.in(this.#run.draw.below(3), () => this.#written.shift()?.())
  }

  #read(): void {
    if (this.#unread.length === 0 || this.mayCrash('read', 'before')) return
    const item = this.#unread.shift()!
    if (this.mayCrash('read', 'inside') || this.mayCrash('read', 'after')) return
    const subscriber = this.subscribers[item.subscriber]!
    // It has unsubscribed while the event was on its way.
    if (this.left.has(item.subscriber)) return this.#answer(item, 'delivered')
    if (this.mayCrash('handle', 'before')) return
    const { draw, plan, isFaulty } = this.#run
    const { timeoutMs } = subscriber.plan.options
    const isSlow = isFaulty && draw.is(plan.rates.slow)
    const tookMs = isSlow ? draw.of([timeoutMs - 1, timeoutMs + 120, timeoutMs * 2, FOR_EVER_MS]) : draw.below(20)
    this.#later(tookMs, () => this.#handled(item))
  }

  #handled(item: Item): void {
    const run = this.#run
    const { draw, plan, isFaulty } = run
    if (isFaulty && run.isPoison(item.frame.id)) return this.die('of poison')
    if (this.mayCrash('handle', 'inside')) return
    // Who asks for a reply does not wait for a tool.
    const mayWait = item.frame.attempt < WANTS_REPLY
    if (isFaulty && mayWait && draw.is(plan.rates.away)) return this.#answer(item, 'away')
    if (isFaulty && draw.is(plan.rates.unrecoverable)) return this.#answer(item, 'unrecoverable')
    if (isFaulty && draw.is(plan.rates.fail)) return this.#answer(item, 'failed')
    if (isFaulty && draw.is(plan.rates.child)) {
      if (this.mayCrash('publish', 'before')) return
      this.write(() => run.publish({ parent: item.frame.id }))
      if (this.mayCrash('publish', 'inside')) return
      // It goes on when the primary has taken it.
      return this.#later(5, () => {
        if (!this.mayCrash('publish', 'after')) this.#done(item)
      })
    }
    this.#done(item)
  }

  #done(item: Item): void {
    this.#run.oracle.effect(item.attempt.of)
    this.#run.tell(() => `${item.frame.id} is handled in lane ${this.number} for ${item.attempt.of.unit}`)
    if (!this.mayCrash('handle', 'after')) this.#answer(item, 'delivered')
  }

  #answer(item: Item, outcome: Outcome): void {
    if (this.mayCrash('answer', 'before') || this.mayCrash('answer', 'inside')) return
    const isReply = this.#run.draw.is(0.5)
    this.#run.tell(() => `lane ${this.number} answers ${item.frame.id}: ${outcome}`)
    this.write(() => this.#answered(item, outcome, isReply && item.frame.attempt > 0xffff))
    this.mayCrash('answer', 'after')
  }
}
