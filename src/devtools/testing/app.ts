import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/event-contracts.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import type { TreeNode } from '../../core/causality/tree.ts'

export interface RequestOptions {
  /** An object or array is sent as JSON; a text, bytes or a `FormData` as they are. */
  body?: unknown
  headers?: Record<string, string>
  /** Sent as `authorization: Bearer <token>`. */
  token?: string
}

export interface TestResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Headers
  /** Parsed where the answer is JSON, text where it is text, else bytes; undefined when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
  readonly body: any
}

export interface EventOptions<Seen extends EventRecord> {
  /** Only an event for which this is true. */
  where?: (event: Seen) => boolean
  /** Milliseconds until it is given up. Default 10,000. */
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

/** What a test can do with a booted runtime and with a single plugin alike. */
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
   * Waits for an event by its name; one that came before counts too.
   * @throws after `timeoutMs`, saying which events came instead
   */
  event(name: EventName, options?: EventOptions<Seen>): Promise<Seen>
  /** All events so far, or those of one name, oldest first. */
  events(name?: EventName): Seen[]
  /**
   * Waits until every event has been handled, with all that it caused: no delivery is left, no retry and no delayed event.
   * What a handler does without being awaited it does not see.
   * @param timeoutMs default 10,000
   * @throws after `timeoutMs`, saying how much is left
   */
  idle(timeoutMs?: number): Promise<void>
  /** What caused what: the events so far as a forest, oldest first. */
  tree(): TreeNode[]
  /** Events that a subscriber has failed at for good. */
  deadLetters(): Promise<DeadLetter[]>
  /** The jobs that plugins have registered. */
  jobs(): Promise<JobInfo[]>
  /** Everything that was logged so far. */
  readonly logs: readonly LogEntry[]
  /** Ends it; a second call does nothing. Called by itself when the test is over. */
  stop(): Promise<void>
}
