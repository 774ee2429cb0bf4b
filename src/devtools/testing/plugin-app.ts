import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { Delivered, EventName, Published } from '../../contracts/event-contracts.ts'
import type { Payload } from '../../contracts/payload.ts'
import type { JobInfo, JobRun } from '../../contracts/scheduler.ts'
import type { Tools } from '../../contracts/tools.ts'
import type { EventOptions, LogEntry, TestUser } from './app.ts'
import type { EventLog } from './event-log.ts'
import { pendingAfter } from './pending.ts'
import type { PluginThread } from './plugin-thread.ts'
import { RunningApp } from './running-app.ts'

/** An event with its payload, as its subscribers get it. */
export interface PublishedEvent<Name extends string = string> extends EventRecord {
  data: Delivered<Name, Payload>
}

/** @internal */
export interface PluginParts<P> {
  port: number
  instance: P
  thread: PluginThread
  events: EventLog<PublishedEvent>
  stop: () => Promise<void>
}

/** One plugin with real tools, in the thread of the test. Made by `plugin`. */
export class PluginApp<P extends object = object> extends RunningApp<PublishedEvent> {
  /** The instance of the plugin. */
  readonly plugin: P
  /** The tools that the plugin has, for the test to prepare data and to check results. */
  readonly tools: Tools
  readonly #thread: PluginThread
  readonly #stop: () => Promise<void>

  /** @internal */
  constructor({ port, instance, thread, events, stop }: PluginParts<P>) {
    super(port, events)
    this.plugin = instance
    this.tools = thread.tools
    this.#thread = thread
    this.#stop = stop
  }

  /** Who calls, in place of what `http.identify` says; undefined: what that says. It counts from the next request on. */
  get user(): TestUser | null | undefined {
    return this.#thread.user
  }
  set user(user: TestUser | null | undefined) {
    this.#thread.user = user
  }

  get logs(): readonly LogEntry[] {
    return this.#thread.logs
  }

  override event<Name extends EventName>(
    name: Name,
    options?: EventOptions<PublishedEvent<Name>>,
  ): Promise<PublishedEvent<Name>> {
    return super.event(name, options as EventOptions<PublishedEvent>) as Promise<PublishedEvent<Name>>
  }

  override events<Name extends EventName>(name?: Name): PublishedEvent<Name>[] {
    return super.events(name) as PublishedEvent<Name>[]
  }

  publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string> {
    return this.tools.event_bus.publish(event, payload)
  }

  async deadLetters(): Promise<DeadLetter[]> {
    return this.tools.event_bus.getDeadLetters()
  }

  async jobs(): Promise<JobInfo[]> {
    return this.tools.scheduler.list()
  }

  /**
   * Runs a job now. Jobs never run by schedule here.
   * @param run what its handler is told. Default: due now, attempt 1, fence 0
   * @throws the error of its handler
   */
  async runJob(name: string, run: Partial<JobRun> = {}): Promise<void> {
    const job = this.#thread.jobs.get(name)
    if (job === undefined) {
      throw new Error(`There is no job ${name}; there are: ${[...this.#thread.jobs.keys()].join(', ') || 'none'}`)
    }
    await job.handler.call(job.owner.instance, { due: new Date(), attempt: 1, fence: 0, ...run })
  }

  protected pendingAfter(timeoutMs: number): Promise<number> {
    return pendingAfter(() => this.#thread.hub.pending, timeoutMs)
  }

  stop(): Promise<void> {
    return this.#stop()
  }
}
