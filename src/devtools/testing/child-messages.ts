import type { DeadLetter, DeliveryFailure, EventRecord } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/payload.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'

/** The calls that the test makes into the runtime that it has booted. */
export interface ChildCalls {
  publish: { args: { event: string; payload: Payload }; result: string }
  /** Returns 0 as soon as nothing is pending, else after `timeoutMs` the number of deliveries that still are. */
  idle: { args: { timeoutMs: number }; result: number }
  deadLetters: { args: object; result: DeadLetter[] }
  jobs: { args: object; result: JobInfo[] }
}

export type ToChild = {
  [Name in keyof ChildCalls]: { id: number; call: Name; args: ChildCalls[Name]['args'] }
}[keyof ChildCalls]

/** Sent in the order of what happens: a result comes after the events that came before it. */
export type FromChild =
  /** Sent once, when the runtime serves. */
  | { type: 'serving'; port: number; plugins: Record<string, PluginHealth>; reasons: string[] }
  | { type: 'event'; record: EventRecord }
  | { type: 'failure'; failure: DeliveryFailure }
  | { type: 'result'; id: number; result: unknown }
  | { type: 'error'; id: number; error: string }
