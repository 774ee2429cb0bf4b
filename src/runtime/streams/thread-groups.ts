import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/config/subscriber-defaults.ts'
import { broadcastGroupOf, groupOf, streamOf } from './keys.ts'

interface Member {
  /** The subscriber's number in its thread. */
  readonly subscriberIndex: number
  readonly plugin: string
}

/** What one thread reads as one group: its subscribers share the events. When the last one has left it is read no more. */
export interface Group {
  readonly event: string
  readonly stream: string
  /** As the subscribers know it. */
  readonly name: string
  readonly isBroadcast: boolean
  /** As the stream knows it. */
  consumerGroup: string
  timeoutMs: number
  /** Its group is there, and what was left of it is taken over. */
  isOpen: boolean
  /** Too many of its events are being tried again. */
  isHeld: boolean
  readonly members: Member[]
  turn: number
  /** Entries in hand, waiting ones included, and those that are not known to have left. */
  readonly pendingIds: Set<string>
}

/** What one thread reads: as which groups, of which events, and which of these it may read just now. */
export class ThreadGroups {
  readonly #byEvent = new Map<string, Group[]>()
  readonly #bySubscriber = new Map<number, Group>()
  /** Plugins whose subscribers get nothing. */
  readonly #paused = new Set<string>()
  #consumer = ''

  /** As which consumer it reads; empty until it may. */
  get consumer(): string {
    return this.#consumer
  }

  /** From now on it may read. */
  start(consumer: string): void {
    this.#consumer = consumer
    for (const groups of this.#byEvent.values()) {
      for (const group of groups) if (group.isBroadcast) group.consumerGroup = broadcastGroupOf(group.name, consumer)
    }
  }

  add(subscriberIndex: number, plugin: string, event: string, identity: string, options: SubscribeOptions): void {
    const name = options.group ?? identity
    const isBroadcast = options.broadcast === true
    let groups = this.#byEvent.get(event)
    if (groups === undefined) {
      groups = []
      this.#byEvent.set(event, groups)
    }
    let group = groups.find((each) => each.name === name && each.isBroadcast === isBroadcast)
    if (group === undefined) {
      group = {
        event,
        stream: streamOf(event),
        name,
        isBroadcast,
        consumerGroup: isBroadcast && this.#consumer !== '' ? broadcastGroupOf(name, this.#consumer) : groupOf(name),
        timeoutMs: 0,
        isOpen: false,
        isHeld: false,
        members: [],
        turn: 0,
        pendingIds: new Set(),
      }
      groups.push(group)
    }
    group.timeoutMs = options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs
    group.members.push({ subscriberIndex, plugin })
    this.#bySubscriber.set(subscriberIndex, group)
  }

  remove(subscriberIndex: number): void {
    const group = this.#bySubscriber.get(subscriberIndex)
    if (group === undefined) return
    this.#bySubscriber.delete(subscriberIndex)
    const { event, members, pendingIds } = group
    members.splice(
      members.findIndex((each) => each.subscriberIndex === subscriberIndex),
      1,
    )
    if (members.length > 0) return
    group.isOpen = false
    group.isHeld = false
    // While something of it is in hand it stays: whoever subscribes again must not be given that twice.
    const groups = this.#byEvent.get(event)!
    if (pendingIds.size === 0) groups.splice(groups.indexOf(group), 1)
  }

  /** Of one event, as they are at any time; undefined for one that nobody here has ever subscribed to. */
  of(event: string): readonly Group[] | undefined {
    return this.#byEvent.get(event)
  }

  find(event: string, consumerGroup: string): Group | undefined {
    return this.#byEvent.get(event)?.find((group) => group.consumerGroup === consumerGroup)
  }

  /** A group may be read. */
  open(event: string, consumerGroup: string): void {
    const group = this.find(event, consumerGroup)
    // Its last subscriber may have left meanwhile.
    if (group !== undefined && group.members.length > 0) group.isOpen = true
  }

  hold(event: string, consumerGroup: string, isHeld: boolean): void {
    const group = this.find(event, consumerGroup)
    if (group !== undefined) group.isHeld = isHeld
  }

  /** The subscribers of a plugin get nothing new, or go on. */
  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
  }

  mayRead({ isOpen, isHeld, members }: Group): boolean {
    return isOpen && !isHeld && (this.#paused.size === 0 || members.some(this.#isAwake))
  }

  /** The subscriber whose turn it is, null when all have left. When all are paused it is one of them: what is in hand already goes on. */
  nextSubscriber(group: Group): number | null {
    let { members } = group
    if (this.#paused.size > 0) {
      const awake = members.filter(this.#isAwake)
      if (awake.length > 0) members = awake
    }
    return members.length === 0 ? null : members[group.turn++ % members.length]!.subscriberIndex
  }

  readonly #isAwake = ({ plugin }: Member): boolean => !this.#paused.has(plugin)
}
