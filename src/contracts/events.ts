// Events by their names: payloads, contracts, how they are published.
import type { StandardSchemaV1 } from './common.ts'

/** An event's payload: a JSON object of at most 1 MiB. */
export type Payload = Record<string, unknown>

/** What `domains/<domain>/events.ts` exports by default: event name → schema of its payload. */
export type EventContracts = Readonly<Record<string, StandardSchemaV1>>

/**
 * Payloads by event name, as `publish` and `subscribe` know them. Each domain adds its own beside its contracts:
 * `declare module 'heddle' { interface Events extends PayloadsOf<typeof contracts> {} }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: an alias could not be added to
export interface Events {}

/** Event name → the payload that its contract takes. A payload is published as it was given; what the schema makes of it is not used. */
export type PayloadsOf<Contracts extends EventContracts> = { [Event in keyof Contracts]: InputOf<Contracts[Event]> }
type InputOf<Schema extends StandardSchemaV1> = NonNullable<Schema['~standard']['types']>['input']

/** Any name; an editor proposes those that have a contract. */
export type EventName = keyof Events | (string & {})

/** The payload that may be published under a name: the one of its contract, or any object where it has none. */
export type Published<Name extends string> = Name extends keyof Events ? Events[Name] : Payload

/** The payload that a subscriber of a name gets: the published one, as JSON; `Own` where the event has no contract. */
export type Delivered<Name extends string, Own> = Name extends keyof Events ? AsJson<Events[Name]> : Own
type AsJson<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : Value extends { toJSON(): infer Text }
    ? Text
    : Value extends object
      ? { [Key in keyof Value]: AsJson<Value[Key]> }
      : Value

export interface PublishOptions {
  /** Events with the same key reach a subscriber one after another, in the order in which they were published. */
  key?: string
  /** Milliseconds until the event is delivered: any safe integer. */
  delayMs?: number
  /**
   * When the event is delivered, instead of `delayMs`: by the clock of the publisher, at the earliest. A time that has passed is now.
   */
  at?: Date
  /**
   * Milliseconds after which an event that no handler has begun is not delivered any more. They begin when `delayMs` is over or `at` is reached: with a delay of
   * 60,000 and a lifetime of 5,000 the event is delivered between the 60th and the 65th second, or not at all.
   */
  ttlMs?: number
  /**
   * Which events a subscriber gets first. After seven of higher priorities it gets one of each lower priority that waits, so none waits forever. Events of one
   * key keep their order. Default `'normal'`.
   */
  priority?: 'high' | 'normal' | 'low'
  /**
   * Of all events of this name with the same `unique`, a subscriber has one at a time: if one is there, `publish` takes no other, and resolves with the
   * id of that one. 1 to 512 characters. Not for subscribers with `broadcast`, nor for those that came after the boot: they get every event.
   */
  unique?: string
  /**
   * How long an event with `unique` is there: until a handler begins it, or until it has ended, retries included. Always give the same for a name.
   * Default `'running'`, with `replace` `'waiting'`.
   */
  while?: 'waiting' | 'running'
  /** The event that is there gets the payload and the time of this one, and keeps its id. Only while it waits. Default false. */
  replace?: boolean
}

/** What `cancel` takes back: an event by its id, or all events of a name, those alone of one key or of one `unique`. */
export type CancelFilter = string | { event: EventName; key?: string; unique?: string }

export interface CancelOptions {
  /**
   * With the id of an event: takes back, too, what its handlers have published, what the handlers of that have, and so on, 16 generations far; and for ten
   * minutes whatever is still published there. Default false.
   */
  causedToo?: boolean
}

/** A filter with its options. */
export type CancelTarget = CancelFilter | { id: string; causedToo: true }
