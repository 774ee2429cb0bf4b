// The application under test, as a test sees it: requests, events, jobs, logs; and the test that it was started for.
import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/events.ts'
import type { User } from '../../contracts/http-request.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import type { TreeNode } from '../../runtime/events/trace-ring.ts'
import type { TestClock } from './clock.ts'
import type { EventOptions, SeenEvents } from './seen-events.ts'

/** A test of `node:test`, or any other object with `after`. */
export interface TestOwner {
  /** Registers a function that runs when the test is over. */
  after(end: () => Promise<void>): void
}

/** Ends what the test has started when the test is over, and shows the log when it has failed, as far as the runner says so. */
export function endWith(owner: TestOwner | undefined, stop: () => Promise<void>, log: () => string): void {
  owner?.after(async () => {
    await stop()
    if (((owner as { error?: unknown }).error ?? undefined) !== undefined) console.error(log())
  })
}

export function isOwner(value: unknown): value is TestOwner {
  return typeof value === 'object' && value !== null && typeof (value as TestOwner).after === 'function'
}

/** A log line of the runtime or of a plugin. */
export interface LogEntry {
  level: 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR'
  message: string
  /** The plugin or tool that has logged it. */
  identity: string
  fields: Record<string, unknown>
}

/** Most lines that are shown. */
const SHOWN_MAX = 60

/** The output of a runtime as text: the end of its log, and its other output. */
export function logText({ logs, otherOutput = [] }: { logs: readonly LogEntry[]; otherOutput?: string[] }): string {
  const lines = logs.slice(-SHOWN_MAX).map(({ level, identity, message, fields }) => {
    const { stack, ...rest } = fields
    const shown = Object.keys(rest).length === 0 ? '' : `  ${JSON.stringify(rest)}`
    return `  ${level} ${identity}  ${message}${shown}${typeof stack === 'string' ? `\n${stack}` : ''}`
  })
  return ['The log of the runtime:', ...lines, ...otherOutput.map((text) => text.trimEnd())].join('\n')
}

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

const IDLE_TIMEOUT_MS = 10_000

/** What a test sees of the process or of the thread. */
interface Witness<Seen extends EventRecord> {
  logs: readonly LogEntry[]
  events: SeenEvents<Seen>
}

/** What a booted runtime and a single plugin have in common: it listens on a port and records events, in this thread or in another process. */
export abstract class TestApp<Seen extends EventRecord = EventRecord> implements AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The time of the application, which the test moves. */
  readonly clock: TestClock
  readonly #witness: Witness<Seen>
  readonly #stop: () => Promise<void>

  /** @internal */
  constructor(port: number, clock: TestClock, witness: Witness<Seen>, stop: () => Promise<void>) {
    this.port = port
    this.clock = clock
    this.url = `http://127.0.0.1:${port}`
    this.#witness = witness
    this.#stop = stop
  }

  /** Publishes as a plugin would, under the name `test`. Resolves with the event's id. */
  abstract publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string>
  /** The deliveries that have failed for good. */
  abstract deadLetters(): Promise<DeadLetter[]>
  /** The jobs that plugins have registered. */
  abstract jobs(): Promise<JobInfo[]>
  /** Waits until no delivery is pending. @returns how many still are pending after `timeoutMs` */
  protected abstract pendingAfter(timeoutMs: number): Promise<number>

  /** Everything that was logged so far. */
  get logs(): readonly LogEntry[] {
    return this.#witness.logs
  }

  /**
   * Ends the app; a second call does nothing. The kit calls it when the test is over. A runtime that was booted drains, as on SIGTERM: it finishes
   * its work and runs `onStop`.
   */
  stop(): Promise<void> {
    return this.#stop()
  }

  /** The platform's `fetch`, with a path instead of an address. */
  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  /** Sends a request. Resolves with the answer, whatever its status; a redirect is not followed. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<TestResponse> {
    return responseOf(await this.fetch(path, prepare(method, options)))
  }

  get(path: string, options?: RequestOptions): Promise<TestResponse> {
    return this.request('GET', path, options)
  }

  post(path: string, body?: unknown, options?: Omit<RequestOptions, 'body'>): Promise<TestResponse> {
    return this.request('POST', path, { ...options, body })
  }

  /**
   * Waits for an event by its name. Resolves at once when one has come already.
   * @throws after `timeoutMs`; the message lists the events that came instead
   */
  event(name: EventName, options?: EventOptions<Seen>): Promise<Seen> {
    return this.#witness.events.wait(name, options)
  }

  /** All events so far, or those of one name, oldest first. */
  events(name?: EventName): Seen[] {
    return this.#witness.events.list(name)
  }

  /** The causal forest of the events so far, oldest first. */
  tree(): TreeNode[] {
    return this.#witness.events.tree()
  }

  /**
   * Waits until every event and all that it caused has been handled: no delivery, retry or delayed event is left.
   * Does not wait for work that a handler has started without awaiting it.
   * @param timeoutMs default 10,000
   * @throws after `timeoutMs`; the message says how many deliveries are left
   */
  async idle(timeoutMs = IDLE_TIMEOUT_MS): Promise<void> {
    const pending = await this.pendingAfter(timeoutMs)
    if (pending === 0) return
    throw new Error(
      `Not idle within ${timeoutMs} ms, deliveries to go: ${pending}.\n${this.#witness.events.describe()}`,
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** The options of `fetch`. A text, bytes, a form or a stream are sent unchanged, anything else as JSON. */
function prepare(method: string, { body, headers: given, token }: RequestOptions): RequestInit {
  const headers = new Headers(given)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  const isStream = body instanceof ReadableStream
  const isText = body === undefined || typeof body === 'string'
  const isRaw = isText || isStream || body instanceof Uint8Array || body instanceof FormData
  if (!isRaw && !headers.has('content-type')) headers.set('content-type', 'application/json')
  const sent = isRaw ? (body as string | Buffer | FormData | ReadableStream | undefined) : JSON.stringify(body)
  const init: RequestInit = { method: method.toUpperCase(), headers, body: sent, redirect: 'manual' }
  return isStream ? { ...init, duplex: 'half' } : init
}

async function responseOf(response: Response): Promise<TestResponse> {
  const { status, headers } = response
  const bytes = Buffer.from(await response.arrayBuffer())
  return {
    status,
    headers,
    body: bytes.byteLength === 0 ? undefined : parsed(headers.get('content-type') ?? '', bytes),
  }
}

function parsed(type: string, bytes: Buffer): unknown {
  if (/^application\/(?:[\w.-]+\+)?json\b/.test(type)) return JSON.parse(bytes.toString())
  return type.startsWith('text/') ? bytes.toString() : bytes
}
