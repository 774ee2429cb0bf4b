import type { LaneInfo } from '../../contracts/registry.ts'
import type { Lane, LaneState } from '../dispatch/lane.ts'
import { infoOf } from './lane-info.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'
import type { OnDemandLane } from './on-demand-lane.ts'

export interface LaneSlotsOptions {
  /** Regular lanes, once all have begun. */
  readonly lanesWanted: number
  /** The slots of the regular lanes. Only `add` makes them more. */
  readonly slots: LaneSlot[]
  readonly quarantine: OnDemandLane
  readonly probation: OnDemandLane
  /** Threads that are in no slot: about to take over, or leaving. */
  readonly outside: ReadonlySet<LaneThread>
}

/** The slots of all lanes, and what there is to say of the threads in them. */
export class LaneSlots {
  readonly #options: LaneSlotsOptions

  constructor(options: LaneSlotsOptions) {
    this.#options = options
  }

  /** Lanes that take work. */
  get ready(): Lane[] {
    return this.threads
      .filter(({ lane: { role, state } }) => role === 'regular' && state === 'ready')
      .map(({ lane }) => lane)
  }

  /** Lanes that take requests: those, and the one that takes what is under suspicion. */
  get serving(): Lane[] {
    const thread = this.#options.probation.slot?.thread
    return thread?.lane.state === 'ready' ? [...this.ready, thread.lane] : this.ready
  }

  /** False until the probation lane has been up. */
  get hasProbationBegun(): boolean {
    const { slot } = this.#options.probation
    return slot !== null && (slot.restarts > 0 || slot.thread.lane.state !== 'starting')
  }

  get regularSlots(): readonly LaneSlot[] {
    return this.#options.slots
  }

  /** The lanes that are in their slots, whatever their state; without those on demand. */
  get regular(): Lane[] {
    return this.#options.slots.map(({ thread }) => thread.lane)
  }

  /** Every lane whose thread runs, or is about to. */
  get all(): Lane[] {
    return this.threads.map(({ lane }) => lane)
  }

  /** Every thread that runs, or is about to. */
  get threads(): LaneThread[] {
    const { slots, quarantine, probation, outside } = this.#options
    const threads = new Set<LaneThread>()
    for (const { thread, standby } of slots) {
      threads.add(thread)
      if (standby !== null) threads.add(standby)
    }
    for (const { slot } of [quarantine, probation]) if (slot !== null) threads.add(slot.thread)
    for (const thread of outside) threads.add(thread)
    return [...threads]
  }

  add(slot: LaneSlot): void {
    this.#options.slots.push(slot)
  }

  slotOf({ role, index }: Lane): LaneSlot {
    const { slots, quarantine, probation } = this.#options
    const onDemand = role === 'regular' ? null : role === 'quarantine' ? quarantine : probation
    return onDemand?.slot ?? slots[index]!
  }

  /** Regular lanes that have not begun. The next of them has the number `next`. */
  get missing(): number {
    return this.#options.lanesWanted - this.next
  }

  get next(): number {
    return this.#options.slots.length
  }

  /** Lanes that boot for the first time, or once more without a plugin that brought them down. */
  get booting(): number {
    return this.#options.slots.filter(({ isRetried, thread }) => isRetried || thread.lane.state === 'starting').length
  }

  get isBootOver(): boolean {
    return this.missing <= 0 && this.booting === 0
  }

  /** True when no other lane serves or is about to: the innocent must not wait for what the guilty have done. */
  isLast(slot: LaneSlot): boolean {
    if (this.missing > 0) return false
    return this.#options.slots.every(({ index, thread }) => index === slot.index || thread.isLost)
  }

  countByState(): Record<string, number> {
    const counts: Record<string, number> = { starting: 0, ready: 0, draining: 0, dead: 0 }
    for (const { thread } of this.#options.slots) counts[stateOf(thread)]!++
    return counts
  }

  info(): LaneInfo[] {
    const { slots, quarantine, probation } = this.#options
    const infos: LaneInfo[] = []
    for (const slot of slots) {
      const { thread, standby } = slot
      infos.push(infoOf(thread, slot, { state: stateOf(thread) }))
      if (standby !== null) infos.push(infoOf(standby, slot, { role: 'relief', deaths: [] }))
    }
    for (const { slot, isIdle } of [quarantine, probation])
      if (slot !== null) infos.push(infoOf(slot.thread, slot, { state: isIdle ? 'idle' : stateOf(slot.thread) }))
    return infos
  }
}

/** What its thread still finishes is no matter of its place. */
const stateOf = (thread: LaneThread): LaneState => (thread.isLost ? 'dead' : thread.lane.state)
