import type { Payload } from './payload.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** What `domains/<domain>/events.ts` exports by default: event name → schema of its payload. */
export type EventContracts = Readonly<Record<string, StandardSchemaV1>>

/**
 * Payloads by event name, as `publish` and `subscribe` know them. Each domain adds its own beside its contracts:
 * `declare module '#heddle' { interface Events extends PayloadsOf<typeof contracts> {} }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: an alias could not be added to
export interface Events {}

/** Event name → the payload that its contract takes: what is published is what was given, not what a schema makes of it. */
export type PayloadsOf<Contracts extends EventContracts> = { [Event in keyof Contracts]: InputOf<Contracts[Event]> }
type InputOf<Schema extends StandardSchemaV1> = NonNullable<Schema['~standard']['types']>['input']

/** Any name; those with a contract are proposed. */
export type EventName = keyof Events | (string & {})

/** What may be published under a name: what its contract takes, any object where it has none. */
export type Published<Name extends string> = Name extends keyof Events ? Events[Name] : Payload

/** What reaches a subscriber of a name: what was published, as JSON; `Own` where it has no contract. */
export type Delivered<Name extends string, Own> = Name extends keyof Events ? AsJson<Events[Name]> : Own
type AsJson<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : Value extends { toJSON(): infer Text }
    ? Text
    : Value extends object
      ? { [Key in keyof Value]: AsJson<Value[Key]> }
      : Value
