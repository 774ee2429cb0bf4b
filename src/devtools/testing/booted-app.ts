import type { DeadLetter, EventRecord } from '../../contracts/event-bus.ts'
import type { EventName, Published } from '../../contracts/event-contracts.ts'
import type { Payload } from '../../contracts/payload.ts'
import type { PluginHealth } from '../../contracts/registry.ts'
import type { JobInfo } from '../../contracts/scheduler.ts'
import type { LogEntry } from './app.ts'
import type { EventLog } from './event-log.ts'
import { RunningApp } from './running-app.ts'
import type { RuntimeProcess } from './runtime-process.ts'

/** @internal */
export interface BootedParts {
  port: number
  plugins: Readonly<Record<string, PluginHealth>>
  child: RuntimeProcess
  events: EventLog<EventRecord>
  stop: () => Promise<void>
}

/** A process of the runtime on a free port of 127.0.0.1, with an empty database of its own. Made by `boot`. */
export class BootedApp extends RunningApp<EventRecord> {
  /** The health of the plugins after the start. */
  readonly plugins: Readonly<Record<string, PluginHealth>>
  readonly #child: RuntimeProcess
  readonly #stop: () => Promise<void>

  /** @internal */
  constructor({ port, plugins, child, events, stop }: BootedParts) {
    super(port, events)
    this.plugins = plugins
    this.#child = child
    this.#stop = stop
  }

  get logs(): readonly LogEntry[] {
    return this.#child.logs
  }

  publish<Name extends EventName>(event: Name, payload: Published<Name>): Promise<string> {
    return this.#child.call('publish', { event, payload: payload as Payload })
  }

  deadLetters(): Promise<DeadLetter[]> {
    return this.#child.call('deadLetters', {})
  }

  jobs(): Promise<JobInfo[]> {
    return this.#child.call('jobs', {})
  }

  protected pendingAfter(timeoutMs: number): Promise<number> {
    return this.#child.call('idle', { timeoutMs })
  }

  /** Drains the runtime, as SIGTERM does: it finishes its work and runs `onStop`. */
  stop(): Promise<void> {
    return this.#stop()
  }
}
