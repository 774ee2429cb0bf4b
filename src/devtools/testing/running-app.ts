import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/event-contracts.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import type { EventOptions, LogEntry, RequestOptions, TestApp, TestResponse } from './app.ts'
import type { EventLog } from './event-log.ts'
import { prepare, responseOf } from './request.ts'

const IDLE_TIMEOUT_MS = 10_000

/** An app that listens on a port and records events, in this thread or in another process. */
export abstract class RunningApp<Seen extends EventRecord> implements TestApp<Seen> {
  readonly url: string
  readonly port: number
  readonly #events: EventLog<Seen>

  /** @internal */
  constructor(port: number, events: EventLog<Seen>) {
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.#events = events
  }

  abstract get logs(): readonly LogEntry[]
  abstract publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string>
  abstract deadLetters(): Promise<DeadLetter[]>
  abstract jobs(): Promise<JobInfo[]>
  abstract stop(): Promise<void>
  /** Waits until no delivery is pending. @returns how many still are pending after `timeoutMs` */
  protected abstract pendingAfter(timeoutMs: number): Promise<number>

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<TestResponse> {
    return responseOf(await this.fetch(path, prepare(method, options)))
  }

  get(path: string, options?: RequestOptions): Promise<TestResponse> {
    return this.request('GET', path, options)
  }

  post(path: string, body?: unknown, options?: Omit<RequestOptions, 'body'>): Promise<TestResponse> {
    return this.request('POST', path, { ...options, body })
  }

  event(name: EventName, options?: EventOptions<Seen>): Promise<Seen> {
    return this.#events.wait(name, options)
  }

  events(name?: EventName): Seen[] {
    return this.#events.list(name)
  }

  tree() {
    return this.#events.tree()
  }

  async idle(timeoutMs = IDLE_TIMEOUT_MS): Promise<void> {
    const pending = await this.pendingAfter(timeoutMs)
    if (pending === 0) return
    throw new Error(`Not idle within ${timeoutMs} ms, deliveries to go: ${pending}.\n${this.#events.describe()}`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
