/** What the contract of logs asks of a log: processes on it, what their subscribers have noted, and its server. */
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import type { PublishOptions } from '../../src/contracts/events.ts'

/** `hold x` waits until the test lets `x` go, `block` holds its whole thread, `exit` ends the lane and `kill` the process, `exit-once` ends the lane the first time, `fail-once` is a dead letter the first time, `publish x` sends a child with the tag `x`, `odd` fails with a text that no database takes. */
export type Step =
  | 'throw'
  | 'unrecoverable'
  | 'odd'
  | 'exit'
  | 'exit-once'
  | 'kill'
  | 'fail-once'
  | `wait ${number}`
  | `block ${number}`
  | `away ${number}`
  | `hold ${string}`
  | `publish ${string}`

export interface Work {
  /** Whose it is: each rule has its own. */
  tag: string
  n: number
  key?: string | undefined
  /** For each attempt; the last one counts for all further ones. Left out: nothing is to be done. */
  course?: readonly (Step | readonly Step[])[]
}

/** What a subscriber has noted. */
export interface Note {
  what: 'begin' | 'end'
  group: string
  tag: string
  n: number
  key?: string
  id: string
  attempt: number
  parent: string | null
  process: string
  thread: number
  /** Milliseconds since the epoch. */
  atMs: number
}

/** A process with the hub and the log, as a test and an operator use it. */
export interface LogProcess {
  readonly name: string
  /** It was killed, or has ended. */
  readonly isGone: boolean
  /** @returns the event's id, once it is accepted */
  publish(event: string, work: Work, options?: PublishOptions): Promise<string>
  /** Each with its key, if it has one, none of which waits for another. @returns their ids */
  burst(event: string, works: readonly Work[], delayMs?: number): Promise<string[]>
  /** All that are listed. */
  letters(): Promise<DeadLetter[]>
  replay(letter: DeadLetter): Promise<boolean>
  edit(letter: DeadLetter, work: Work): Promise<boolean>
  remove(letter: DeadLetter): Promise<boolean>
  /** As `kill -9`. Resolves when it is gone. */
  crash(): Promise<void>
  /** It has been told to stop, and begins nothing new. */
  readonly isDraining: boolean
  /** SIGTERM. @returns the exit code */
  stop(): Promise<number | null>
  freeze(): void
  thaw(): void
}

export interface OpenOptions {
  /** A subscriber that it does not have. */
  without?: 'work'
  env?: Record<string, string>
}

/** A log that outlives the processes on it, if it can. */
export interface LogStore {
  /** Starts a process, and resolves when it serves. The name is its own among the living. */
  open(name: string, options?: OpenOptions): Promise<LogProcess>
  /** The process that is there for whoever asks; the first that has been opened. */
  process(): Promise<LogProcess>
  /** Resolves when so many processes take part in the delivery. */
  together(count: number): Promise<void>
  /** What the subscribers have noted of a tag so far, in its order over all processes. */
  notes(tag: string): Note[]
  /** Lets the handlers go on that hold for a name. */
  letGo(name: string): void
  /** How many events and deliveries are stored. */
  left(): Promise<number>
  /** How many deliveries to a handler are stored as tried before, or as begun in time. */
  noted(handler: string): Promise<number>
  /** Takes the server away, or lets it stand still. Null where nothing can be away. */
  readonly server: { stop(): Promise<void>; start(): Promise<void>; freeze(): void; thaw(): void } | null
  /** How long a rule waits for what is to happen, milliseconds: shorter where it is known that it does not. */
  patienceMs: number
}

export type Rule = (log: LogStore, tag: string) => Promise<void>
export type Rules = Readonly<Record<string, Rule>>
