import type { DeadLetter, DeliveryFailure, EventRecord } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/payload.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'

/** What the test asks of the runtime that it has booted. */
export interface Questions {
  publish: { args: { event: string; payload: Payload }; answer: string }
  /** Answers as soon as nothing is pending, else after `timeoutMs` with what still is. */
  idle: { args: { timeoutMs: number }; answer: number }
  deadLetters: { args: object; answer: DeadLetter[] }
  jobs: { args: object; answer: JobInfo[] }
}

export type ToChild = {
  [Name in keyof Questions]: { id: number; ask: Name; args: Questions[Name]['args'] }
}[keyof Questions]

/** Told in the order in which it happened: an answer comes after the events that came before it. */
export type FromChild =
  /** It serves; sent once. */
  | { type: 'serving'; port: number; plugins: Record<string, PluginHealth>; reasons: string[] }
  | { type: 'event'; record: EventRecord }
  | { type: 'failure'; failure: DeliveryFailure }
  | { type: 'answer'; id: number; answer: unknown }
  | { type: 'refusal'; id: number; error: string }
