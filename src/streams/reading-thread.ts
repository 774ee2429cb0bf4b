import type { SubscribeOptions } from '../contracts/event-bus.ts'
import { broadcastGroupOf, consumerOf, groupOf, streamOf } from './keys.ts'
import type { Reading } from './stream-watch.ts'

/** One group of one stream that this process reads. */
export interface Pair {
  readonly event: string
  readonly stream: string
  readonly group: string
  /** It is one thread's own. */
  readonly isBroadcast: boolean
}

/** Such a group as one subscriber of a thread has it. */
export interface OwnPair extends Pair {
  /** The subscriber's number in its thread. */
  readonly local: number
}

export const pairKey = ({ stream, group }: Pick<Pair, 'stream' | 'group'>): string => `${stream} ${group}`

/** A thread that reads: as which consumer, and what for. */
export class ReadingThread implements Reading {
  readonly consumer: string
  readonly thread: number | 'primary'
  readonly pairs: OwnPair[] = []
  readonly #isResponsive: () => boolean
  readonly #wake: (event: string) => void
  readonly open: (pair: Pair) => void
  readonly hold: (pair: Pair, isHeld: boolean) => void
  /** It reads, and all groups that it had from the beginning are there. */
  isStarted = false
  isStopped = false
  /** Its groups are being opened, or are: one that comes later is opened at once. */
  hasBegun = false

  constructor(
    thread: number | 'primary',
    replica: string,
    isResponsive: () => boolean,
    told: { wake: (event: string) => void; open: (pair: Pair) => void; hold: (pair: Pair, isHeld: boolean) => void },
  ) {
    this.thread = thread
    this.consumer = consumerOf(replica, thread)
    this.#isResponsive = isResponsive
    this.#wake = told.wake
    this.open = told.open
    this.hold = told.hold
  }

  get isResponsive(): boolean {
    return this.#isResponsive()
  }
  wake(event: string): void {
    this.#wake(event)
  }

  pairOf(local: number, event: string, identity: string, { group, broadcast }: SubscribeOptions): OwnPair {
    const name = group ?? identity
    const isBroadcast = broadcast === true
    const inStream = isBroadcast ? broadcastGroupOf(name, this.consumer) : groupOf(name)
    return { local, event, stream: streamOf(event), group: inStream, isBroadcast }
  }
}
