/** The lanes of a run: who starts, dies, drains and is replaced, and what each has subscribed to, as the supervisor has it. */
import type { BlackBox } from '../../src/contracts/registry.ts'
import type { Lane } from '../../src/primary/dispatch/lane.ts'
import type { LaneSubscribers } from '../../src/primary/events/lane-subscribers.ts'
import { SimulatedLane } from './lane.ts'
import type { GroupPlan } from './plan.ts'
import type { Run } from './run.ts'

const IDLE_MS = 10_000
const BOX = { message: 'it died', guilty: null, steps: [] } as unknown as BlackBox
const NOTHING: ReadonlySet<number> = new Set()

/** The hub's own code knows no simulated lane: it uses only what one has. */
const asLane = (lane: SimulatedLane): Lane => lane as unknown as Lane

export class SimulatedLanes {
  readonly #run: Run
  readonly #subscribers: LaneSubscribers
  /** One for each slot. */
  readonly slots: SimulatedLane[] = []
  readonly all = new Set<SimulatedLane>()
  /** By group, in which lanes it is, but for the quarantine lane. */
  readonly present = new Map<string, { plan: GroupPlan; lanes: Set<SimulatedLane> }>()
  /** What the code of today subscribes to. */
  groups: readonly GroupPlan[]
  quarantine: SimulatedLane | null = null
  #isQuarantineWanted = false
  #wish = 0
  #numbers = 0
  #temporary = 0
  isReloading = false
  /** The code was loaded anew after the last fault. */
  isHealed = false

  constructor(run: Run, subscribers: LaneSubscribers) {
    this.#run = run
    this.#subscribers = subscribers
    this.groups = run.plan.groups
  }

  start(): void {
    for (let n = 0; n < this.#run.plan.lanes; n++) this.#startIn(n)
  }

  get ready(): SimulatedLane[] {
    return [...this.all].filter(({ state, isAlive }) => state === 'ready' && isAlive)
  }

  #startIn(slot: number): void {
    const lane = new SimulatedLane(this.#run, ++this.#numbers, slot, 'regular')
    this.slots[slot] = lane
    this.#boot(lane, () => {})
  }

  #boot(lane: SimulatedLane, opened: () => void): void {
    this.all.add(lane)
    const { clock, draw } = this.#run
    const { groups } = this
    clock.in(draw.between(1, 60), () => {
      if (lane.mayCrash('boot', 'before')) return
      clock.in(draw.between(1, 40), () => {
        if (lane.mayCrash('boot', 'inside')) return
        lane.state = 'ready'
        this.#run.tell(() => `lane ${lane.number} is up${lane.role === 'quarantine' ? ', for suspects' : ''}`)
        for (const plan of groups) {
          if (lane.role === 'quarantine' && plan.group === this.#run.plan.neverInQuarantine) continue
          if (this.#run.isFaulty && draw.is(this.#run.plan.rates.lacking)) {
            this.#run.tell(() => `lane ${lane.number} lacks ${plan.group}`)
            continue
          }
          this.#add(lane, plan, false)
        }
        this.#subscribers.complete(asLane(lane))
        opened()
        this.changed()
        lane.mayCrash('boot', 'after')
      })
    })
  }

  #add(lane: SimulatedLane, plan: GroupPlan, isTemporary: boolean): number {
    const { group, event, options } = plan
    const unit = options.broadcast ? `${group}@${lane.number}` : group
    const index = lane.subscribers.push({ plan, unit }) - 1
    if (lane.role === 'regular') {
      const present = this.present.get(group) ?? { plan, lanes: new Set() }
      this.present.set(group, { plan, lanes: present.lanes.add(lane) })
    }
    const subscription = { event, identity: group, plugin: group, options: { ...options, group } }
    this.#subscribers.add(asLane(lane), index, subscription, isTemporary)
    return index
  }

  /** All slots are filled: what no lane has is dropped. */
  changed(): void {
    if (!this.areUp) return
    for (const [group, { lanes }] of this.present) if (lanes.size === 0) this.#groupGone(group)
    this.#subscribers.dropVacant()
    this.#run.oracle.settled()
  }

  #groupGone(group: string): void {
    this.present.delete(group)
    this.#run.tell(() => `${group} is gone`)
    this.#run.oracle.unitGone(group)
  }

  #leave(lane: SimulatedLane): void {
    for (const [group, { lanes, plan }] of this.present)
      if (lanes.delete(lane) && plan.options.broadcast) this.#run.oracle.unitGone(`${group}@${lane.number}`)
    this.#subscribers.leave(asLane(lane))
  }

  // ── death ─────────────────────────────────────────────────────────────────

  /** Its thread has ended. The primary hears of it later. */
  died(lane: SimulatedLane): void {
    const { clock, draw } = this.#run
    if (draw.is(0.3))
      clock.in(draw.below(20), () => {
        if (lane.state === 'dead') return
        lane.state = 'draining'
        this.#leave(lane)
      })
    clock.in(draw.of([0, 20, 120, 400]), () => this.#bury(lane, true))
  }

  #bury(lane: SimulatedLane, isDeath: boolean): void {
    if (!this.all.delete(lane)) return
    const { oracle, clock, draw } = this.#run
    const left = lane.dispose()
    const unread = isDeath ? left : NOTHING
    this.#run.tell(
      () => `lane ${lane.number} is gone, with ${lane.items.size} deliveries, ${unread.size} of them unread`,
    )
    this.#leave(lane)
    if (isDeath) this.changed()
    const items = [...lane.items.values()].map(({ id, attempt }) => ({ attempt, isUnread: unread.has(id) }))
    oracle.laneGone(items, isDeath)
    this.#subscribers.forget(asLane(lane), unread, isDeath ? BOX : null)
    oracle.settled()
    const restartMs = draw.of([0, 50, 500])
    if (lane === this.quarantine) {
      this.quarantine = null
      if (this.#isQuarantineWanted) clock.in(restartMs, () => this.#startQuarantine())
    } else if (this.slots[lane.index] === lane) clock.in(restartMs, () => this.#startIn(lane.index))
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /** The lanes are replaced one after another by such with new code. */
  reload(groups: readonly GroupPlan[]): void {
    if (this.isReloading) return
    this.isReloading = true
    this.isHealed = !this.#run.isFaulty
    this.groups = groups
    this.#run.tell(() => `reload: ${groups.map(({ group }) => group).join(' ')}`)
    this.#replace(0)
  }

  #replace(slot: number): void {
    if (slot === this.slots.length) {
      this.isReloading = false
      this.#endQuarantine()
      return this.changed()
    }
    const fresh = new SimulatedLane(this.#run, ++this.#numbers, slot, 'regular')
    const old = this.slots[slot]!
    // It is in the slot only when it is up: the old one may die meanwhile, and be replaced by itself.
    this.#boot(fresh, () => {
      const replaced = this.slots[slot]!
      this.slots[slot] = fresh
      this.#drain(replaced)
      if (replaced !== old && old.isAlive) this.#drain(old)
    })
    this.#run.clock.in(150, () => {
      // It has died in its boot: once more.
      if (this.slots[slot] !== fresh && fresh.state === 'starting') {
        this.all.delete(fresh)
        return this.#replace(slot)
      }
      this.#replace(slot + 1)
    })
  }

  /** Gets nothing more, and ends when it has finished. */
  #drain(lane: SimulatedLane): void {
    if (lane.state === 'dead' || lane.state === 'draining') return
    if (lane.state === 'starting') {
      lane.isAlive = false
      return this.#bury(lane, false)
    }
    if (lane.mayCrash('drain', 'before')) return
    lane.state = 'draining'
    this.#run.tell(() => `lane ${lane.number} drains`)
    this.#leave(lane)
    if (lane.mayCrash('drain', 'inside')) return
    const untilMs = this.#run.clock.steadyMs() + this.#run.draw.of([60, 4000])
    const look = (): void => {
      if (lane.state === 'dead' || !this.all.has(lane)) return
      if (lane.deliveriesInFlight > 0 && this.#run.clock.steadyMs() < untilMs) return this.#run.clock.in(25, look)
      if (!lane.mayCrash('drain', 'after')) this.#bury(lane, false)
    }
    look()
  }

  // ── quarantine ────────────────────────────────────────────────────────────

  wantQuarantine(isWanted: boolean): void {
    this.#isQuarantineWanted = isWanted
    const wish = ++this.#wish
    this.#run.tell(() => `the quarantine lane is ${isWanted ? 'wanted' : 'not wanted any more'}`)
    // In a later turn: the supervisor starts a thread, and the hub is in the middle of something.
    if (isWanted) this.#run.clock.in(0, () => this.#startQuarantine())
    else
      this.#run.clock.in(IDLE_MS, () => {
        if (wish === this.#wish) this.#endQuarantine()
      })
  }

  renewQuarantine(): void {
    const lane = this.quarantine
    this.#run.clock.in(0, () => {
      if (lane !== null && lane === this.quarantine) this.#bury(lane, false)
    })
  }

  #startQuarantine(): void {
    if (!this.#isQuarantineWanted || this.quarantine !== null) return
    const lane = new SimulatedLane(this.#run, ++this.#numbers, -1, 'quarantine')
    this.quarantine = lane
    this.#boot(lane, () => {})
  }

  #endQuarantine(): void {
    if (this.quarantine?.state === 'ready' && this.quarantine.isAlive) this.#drain(this.quarantine)
  }

  // ── temporary subscribers ─────────────────────────────────────────────────

  subscribe(lane: SimulatedLane, plan: GroupPlan): void {
    if (lane.mayCrash('subscribe', 'before')) return
    lane.write(() => {
      if (lane.role === 'regular' && !this.all.has(lane)) return
      this.#run.tell(() => `lane ${lane.number} subscribes for ${plan.group}`)
      const index = this.#add(lane, plan, true)
      this.#temporaries.push({ lane, index })
    })
    if (lane.mayCrash('subscribe', 'inside')) return
    this.#run.clock.in(4, () => lane.mayCrash('subscribe', 'after'))
  }

  #temporaries: { lane: SimulatedLane; index: number }[] = []

  /** One that is drawn leaves. @returns false when there is none */
  unsubscribe(): boolean {
    this.#temporaries = this.#temporaries.filter(({ lane }) => lane.isAlive && this.all.has(lane))
    if (this.#temporaries.length === 0) return false
    const [each] = this.#temporaries.splice(this.#run.draw.below(this.#temporaries.length), 1)
    const { lane, index } = each!
    if (lane.mayCrash('unsubscribe', 'before')) return true
    const { plan, unit } = lane.subscribers[index]!
    lane.left.add(index)
    lane.write(() => {
      this.#run.tell(() => `lane ${lane.number} has unsubscribed ${plan.group}`)
      const present = this.present.get(plan.group)
      if (plan.options.broadcast) this.#run.oracle.unitGone(unit)
      present?.lanes.delete(lane)
      if (lane.role === 'regular' && present?.lanes.size === 0) this.#groupGone(plan.group)
      this.#subscribers.remove(asLane(lane), index)
      this.#run.oracle.settled()
    })
    if (lane.mayCrash('unsubscribe', 'inside')) return true
    this.#run.clock.in(4, () => lane.mayCrash('unsubscribe', 'after'))
    return true
  }

  /** Each slot has a lane that is up. */
  get areUp(): boolean {
    return this.slots.every(({ state, isAlive }) => state === 'ready' && isAlive)
  }

  /** Every lane gets the code of today, and all of it. */
  heal(groups: readonly GroupPlan[]): void {
    const begin = (): void => {
      if (this.isReloading || !this.areUp) return this.#run.clock.in(100, begin)
      this.reload(groups)
    }
    begin()
  }

  newGroupName(): string {
    return `t${++this.#temporary}.T`
  }
}
