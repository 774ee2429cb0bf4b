import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/config/subscriber-defaults.ts'
import { broadcastGroupOf, groupOf, streamOf } from './keys.ts'

interface Member {
  /** The subscriber's number in its thread. */
  readonly subscriberIndex: number
  readonly plugin: string
}

/** A consumer group as one thread reads it: its subscribers in the thread share the events. When the last one has left, it is not read any more. */
export interface Group {
  readonly event: string
  readonly stream: string
  /** The group's name among the subscribers. */
  readonly name: string
  readonly isBroadcast: boolean
  /** The group's name in the stream. */
  consumerGroup: string
  timeoutMs: number
  /** Only so many of its events are handled at a time in the process: the hub counts them and hands them out. */
  isBounded: boolean
  /** The group is created, and entries that a former process has left in it are claimed. */
  isOpen: boolean
  /** Too many of its events have failed and are tried again: it is not read. */
  isHeld: boolean
  readonly members: Member[]
  turn: number
  /** How many entries are pending, waiting ones included, or were handed over a short time ago. */
  pending: number
}

/** The groups that one thread reads, by event, and which of them it may read at the moment. */
export class ThreadGroups {
  readonly #byEvent = new Map<string, Group[]>()
  readonly #bySubscriber = new Map<number, Group>()
  /** Plugins whose subscribers get no events. */
  readonly #paused = new Set<string>()
  #consumer = ''

  /** The name of the consumer that it reads as; empty until it may read. */
  get consumer(): string {
    return this.#consumer
  }

  /** The thread may read from now on. */
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
        isBounded: false,
        isOpen: false,
        isHeld: false,
        members: [],
        turn: 0,
        pending: 0,
      }
      groups.push(group)
    }
    group.timeoutMs = options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs
    group.isBounded = options.concurrency !== undefined
    group.members.push({ subscriberIndex, plugin })
    this.#bySubscriber.set(subscriberIndex, group)
  }

  remove(subscriberIndex: number): void {
    const group = this.#bySubscriber.get(subscriberIndex)
    if (group === undefined) return
    this.#bySubscriber.delete(subscriberIndex)
    const { event, members, pending } = group
    members.splice(
      members.findIndex((each) => each.subscriberIndex === subscriberIndex),
      1,
    )
    if (members.length > 0) return
    group.isOpen = false
    group.isHeld = false
    // It stays while it has pending entries: a subscriber that comes back must not get them twice.
    const groups = this.#byEvent.get(event)!
    if (pending === 0) groups.splice(groups.indexOf(group), 1)
  }

  /** The groups of one event, a list that changes with them; undefined for an event that nobody here has ever subscribed to. */
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

  /** The subscribers of a plugin get no new events, or get events again. */
  pause(plugin: string, isPaused: boolean): void {
    if (isPaused) this.#paused.add(plugin)
    else this.#paused.delete(plugin)
  }

  mayRead({ isOpen, isHeld, members }: Group): boolean {
    return isOpen && !isHeld && (this.#paused.size === 0 || members.some(this.#isAwake))
  }

  /** The subscriber whose turn it is, null when all have left. When all are paused it is one of them: entries that are read already are handled. */
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
