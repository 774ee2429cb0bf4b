import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/event-contracts.ts'
import type { User } from '../../contracts/http-request.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import type { TreeNode } from '../../core/causality/tree.ts'

export interface RequestOptions {
  /** An object or array is sent as JSON; a text, bytes, a `FormData` or a `ReadableStream` (without a length) unchanged. */
  body?: unknown
  headers?: Record<string, string>
  /** Sent as `authorization: Bearer <token>`. */
  token?: string
}

/** Who calls in a test: any object with an `id`. */
export type TestUser = User | (User & Readonly<Record<string, unknown>>)

export interface TestResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Headers
  /** The parsed value of JSON, a text for `text/*`, else bytes; undefined for an empty body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
  readonly body: any
}

export interface EventOptions<Seen extends EventRecord> {
  /** Waits for an event for which this returns true. */
  where?: (event: Seen) => boolean
  /** Milliseconds after which the wait fails. Default 10,000. */
  timeoutMs?: number
}

/** A log line of the runtime or of a plugin. */
export interface LogEntry {
  level: 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR'
  message: string
  /** The plugin or tool that has logged it. */
  identity: string
  fields: Record<string, unknown>
}

/** The methods that a booted runtime and a single plugin have in common. */
export interface TestApp<Seen extends EventRecord = EventRecord> extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The platform's `fetch`, with a path instead of an address. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Sends a request. Resolves with the answer, whatever its status; a redirect is not followed. */
  request(method: string, path: string, options?: RequestOptions): Promise<TestResponse>
  get(path: string, options?: RequestOptions): Promise<TestResponse>
  post(path: string, body?: unknown, options?: Omit<RequestOptions, 'body'>): Promise<TestResponse>
  /** Publishes as a plugin would, under the name `test`. Resolves with the event's id. */
  publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string>
  /**
   * Waits for an event by its name. Resolves at once when one has come already.
   * @throws after `timeoutMs`; the message lists the events that came instead
   */
  event(name: EventName, options?: EventOptions<Seen>): Promise<Seen>
  /** All events so far, or those of one name, oldest first. */
  events(name?: EventName): Seen[]
  /**
   * Waits until every event and all that it caused has been handled: no delivery, retry or delayed event is left.
   * Does not wait for work that a handler has started without awaiting it.
   * @param timeoutMs default 10,000
   * @throws after `timeoutMs`; the message says how many deliveries are left
   */
  idle(timeoutMs?: number): Promise<void>
  /** The causal forest of the events so far, oldest first. */
  tree(): TreeNode[]
  /** The deliveries that have failed for good. */
  deadLetters(): Promise<DeadLetter[]>
  /** The jobs that plugins have registered. */
  jobs(): Promise<JobInfo[]>
  /** Everything that was logged so far. */
  readonly logs: readonly LogEntry[]
  /** Ends the app; a second call does nothing. The kit calls it when the test is over. */
  stop(): Promise<void>
}
