import type { DeadLetter, EventRecord, Payload } from '../contracts/event-bus.ts'
import type { PluginHealth } from '../contracts/registry.ts'
import type { JobInfo } from '../contracts/scheduler.ts'
import type { EventOptions, LogEntry, RequestOptions, TestApp, TestResponse } from './app.ts'
import type { EventLog } from './event-log.ts'
import { prepare, responseOf } from './request.ts'
import type { RuntimeProcess } from './runtime-process.ts'

const IDLE_TIMEOUT_MS = 5000

export interface BootedParts {
  port: number
  plugins: Readonly<Record<string, PluginHealth>>
  child: RuntimeProcess
  events: EventLog<EventRecord>
  stop: () => Promise<void>
}

/** A real process of the runtime, on a free port of 127.0.0.1, with an empty database of its own. Made by `boot`. */
export class BootedApp implements TestApp {
  readonly url: string
  readonly port: number
  /** The plugins as they came up. */
  readonly plugins: Readonly<Record<string, PluginHealth>>
  readonly #child: RuntimeProcess
  readonly #events: EventLog<EventRecord>
  readonly #stop: () => Promise<void>

  constructor({ port, plugins, child, events, stop }: BootedParts) {
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.plugins = plugins
    this.#child = child
    this.#events = events
    this.#stop = stop
  }

  get logs(): readonly LogEntry[] {
    return this.#child.logs
  }

  /** The platform's `fetch`, with a path instead of an address. */
  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<TestResponse> {
    const { body, ...prepared } = prepare(method, options)
    const response = await fetch(this.url + path, { ...prepared, body: body as Buffer | null, redirect: 'manual' })
    return responseOf(response.status, response.headers, new Uint8Array(await response.arrayBuffer()))
  }

  get(path: string, options?: RequestOptions): Promise<TestResponse> {
    return this.request('GET', path, options)
  }

  post(path: string, body?: unknown, options?: Omit<RequestOptions, 'body'>): Promise<TestResponse> {
    return this.request('POST', path, { ...options, body })
  }

  publish(event: string, payload: Payload): Promise<string> {
    return this.#child.ask('publish', { event, payload })
  }

  event(name: string, options?: EventOptions<EventRecord>): Promise<EventRecord> {
    return this.#events.wait(name, options)
  }

  events(name?: string): EventRecord[] {
    return this.#events.list(name)
  }

  tree() {
    return this.#events.tree()
  }

  deadLetters(): Promise<DeadLetter[]> {
    return this.#child.ask('deadLetters', {})
  }

  jobs(): Promise<JobInfo[]> {
    return this.#child.ask('jobs', {})
  }

  async idle(timeoutMs = IDLE_TIMEOUT_MS): Promise<void> {
    const pending = await this.#child.ask('idle', { timeoutMs })
    if (pending === 0) return
    throw new Error(`Not idle within ${timeoutMs} ms, deliveries to go: ${pending}.\n${this.#events.describe()}`)
  }

  /** Drains it, as SIGTERM does: what is under way is finished, `onStop` runs. */
  stop(): Promise<void> {
    return this.#stop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop()
  }
}
