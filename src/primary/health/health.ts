// The health of the process: its tools and plugins, what lanes are told of it, and what the primary counts.
import type { PluginHealth, ReloadInfo, SystemDump, ToolStatus } from '../../contracts/registry.ts'
import type { Fault } from '../../core/errors/catalogue.ts'
import type { Toolbox } from '../../runtime/kernel/toolbox.ts'
import { STATUS_DEAD, STATUS_FAIL, STATUS_OK, STATUS_REFUSED, StatusTable } from '../../transport/memory/words.ts'
import type { ToLane } from '../../transport/messages.ts'
import type { Lanes } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'

const WORDS: Record<ToolStatus, number> = { OK: STATUS_OK, FAIL: STATUS_FAIL, DEAD: STATUS_DEAD }
/** By status word. */
const STATES: readonly (readonly [status: ToolStatus, fault: Fault | null])[] = [
  ['OK', null],
  ['FAIL', 'tool'],
  ['DEAD', 'tool'],
  ['DEAD', 'caller'],
]

/** The health of the process, kept in the primary. The status words in shared memory are the truth; the messages explain them. */
export class Health {
  readonly #toolbox: Pick<Toolbox, 'names' | 'indexOf'>
  readonly #statuses: StatusTable
  readonly #lanes: Pick<Lanes, 'countByState'>
  readonly #process: SystemDump['process'] | null
  /** Told of each change. */
  onChange: () => void = () => {}
  /** The last reload of the lanes; undefined when there was none. */
  reload: ReloadInfo | undefined
  readonly reloads = { ok: 0, failed: 0 }
  /** Last message by tool and status word: messages of two threads may arrive in either order. */
  readonly #messages = new Map<string, string | null>()
  /** Health of the plugins, as each thread reported it. */
  readonly #reports = new Map<object, Record<string, PluginHealth>>()
  /** Threads that have died and whose plugins no other thread hosts: their last report counts until one does. */
  readonly #gone = new Set<object>()
  readonly #notUpAtStart = new Set<string>()
  /** Plugins that get no work for a while, each with the reason. */
  readonly #disabled = new Map<string, string>()

  listener: NonNullable<SystemDump['listener']> | null = null
  /** HEDDLE_RELEASE. */
  release: string | undefined

  /**
   * @param statuses of the tools: words in shared memory
   * @param process null where there is one
   */
  constructor(
    toolbox: Pick<Toolbox, 'names' | 'indexOf'>,
    statuses: SharedArrayBuffer,
    lanes: Pick<Lanes, 'countByState'>,
    process: SystemDump['process'] | null = null,
  ) {
    this.#toolbox = toolbox
    this.#statuses = new StatusTable(statuses)
    this.#lanes = lanes
    this.#process = process
  }

  /** The lanes were replaced, or (with the reason) the old ones stay. */
  reloaded(error: string | null): void {
    this.reloads[error === null ? 'ok' : 'failed']++
    this.reload = { at: new Date().toISOString(), ok: error === null, error }
  }

  /** A tool call has changed the status word already; this brings the message. */
  noteTool(tool: string, status: ToolStatus, message: string | null, fault: Fault | null): void {
    this.#messages.set(keyOf(tool, fault === 'caller' ? STATUS_REFUSED : WORDS[status]), message)
    this.onChange()
  }

  /** Sets status word and message, of a fault of the tool's own. An unknown tool is ignored: it may belong to a lane's older code. */
  setTool(tool: string, status: ToolStatus, message: string | null): void {
    const index = this.#toolbox.indexOf(tool)
    if (index < 0) return
    this.#statuses.set(index, WORDS[status])
    this.noteTool(tool, status, message, status === 'OK' ? null : 'tool')
  }

  /** @param thread that reports: a lane, or the primary */
  setPlugins(thread: object, plugins: Record<string, PluginHealth>): void {
    this.#reports.set(thread, { ...this.#reports.get(thread), ...plugins })
    for (const name of this.#notUpAtStart) if (plugins[name]?.status === 'OK') this.#notUpAtStart.delete(name)
    this.#dropGone()
    this.onChange()
  }

  /** The thread has ended because it was told to: its report does not count any more. */
  threadLeft(thread: object): void {
    this.#gone.delete(thread)
    if (this.#reports.delete(thread)) this.onChange()
  }

  /** Disables a plugin with the reason, or (null) enables it again: a disabled plugin counts as dead. */
  setDisabled(plugin: string, reason: string | null): void {
    if (reason === null) this.#disabled.delete(plugin)
    else this.#disabled.set(plugin, reason)
    this.onChange()
  }

  /**
   * Why new code is refused: a plugin that is up now would not be. Null when the code is taken.
   * @param faults of plugins that failed, in more words than their health has
   */
  refusalOf(plugins: Record<string, PluginHealth>, faults: Readonly<Record<string, string>> = {}): string | null {
    const now = this.#plugins()
    const lost = Object.entries(plugins).flatMap(([name, health]) =>
      health.status === 'DEAD' && now.get(name)?.status !== 'DEAD' ? [`${name}: ${faults[name] ?? health.error}`] : [],
    )
    return lost.length === 0 ? null : lost.join('\n')
  }

  /** The thread has died. */
  threadGone(thread: object): void {
    if (!this.#reports.has(thread)) return
    this.#gone.add(thread)
    this.#dropGone()
    this.onChange()
  }

  /** All lanes have reported again: reports of dead lanes do not count any more. */
  allReported(): void {
    if (this.#gone.size === 0) return
    for (const thread of this.#gone) this.#reports.delete(thread)
    this.#gone.clear()
    this.onChange()
  }

  #dropGone(): void {
    const live = new Set<string>()
    for (const [thread, report] of this.#reports) {
      if (!this.#gone.has(thread)) for (const name of Object.keys(report)) live.add(name)
    }
    for (const thread of this.#gone) {
      if (!Object.keys(this.#reports.get(thread)!).every((name) => live.has(name))) continue
      this.#gone.delete(thread)
      this.#reports.delete(thread)
    }
  }

  /** True while a plugin boots that others have not waited for. */
  get isBooting(): boolean {
    return [...this.#reports.values()].some((report) =>
      Object.values(report).some(({ status }) => status === 'BOOTING'),
    )
  }

  /** The start is over: notes which plugins are not up. */
  noteStart(): void {
    for (const [name, { status }] of this.#plugins()) if (status !== 'OK') this.#notUpAtStart.add(name)
  }

  /** Plugins that have not been up since the start, each with the reason. What fails later is not among them. */
  get startFaults(): string[] {
    if (this.#notUpAtStart.size === 0) return []
    return [...this.#plugins()].flatMap(([name, health]) =>
      health.status !== 'OK' && this.#notUpAtStart.has(name) ? [`plugin ${name}: ${health.error}`] : [],
    )
  }

  /** A plugin that is dead in one thread counts as dead, and as booting where it is still that: a part of its requests fails. */
  #plugins(): Map<string, PluginHealth> {
    const plugins = new Map<string, PluginHealth>()
    for (const report of this.#reports.values()) {
      for (const [name, health] of Object.entries(report)) {
        const before = plugins.get(name)?.status ?? 'OK'
        if (before === 'OK' || health.status === 'DEAD') plugins.set(name, health)
      }
    }
    for (const [name, error] of this.#disabled) {
      const tools = plugins.get(name)?.tools ?? []
      plugins.set(name, { status: 'DEAD', error, tools })
    }
    return plugins
  }

  dump(): SystemDump {
    const tools: SystemDump['tools'] = {}
    for (const name of this.#toolbox.names) {
      const word = this.#statuses.get(this.#toolbox.indexOf(name))
      const [status, fault] = STATES[word]!
      tools[name] = { status, message: this.#messages.get(keyOf(name, word)) ?? null, fault }
    }
    return {
      tools,
      plugins: Object.fromEntries([...this.#plugins()].sort(([a], [b]) => (a < b ? -1 : 1))),
      ...(this.release === undefined ? {} : { release: this.release }),
      lanes: this.#lanes.countByState(),
      ...(this.listener === null ? {} : { listener: this.listener }),
      ...(this.reload === undefined ? {} : { reload: this.reload }),
      ...(this.#process === null ? {} : { process: this.#process }),
    }
  }
}

const keyOf = (tool: string, word: number): string => `${tool} ${word}`

/** Changes are sent to the lanes this much later, together, milliseconds. */
const SNAPSHOT_MS = 50

/** Sends to the lanes what plugins there may read at any time: the health of the process, and the subscribers of each event. */
export class Snapshots {
  readonly #health: Health
  readonly #hub: Hub
  readonly #lanes: Pick<Lanes, 'all'>
  #timer: NodeJS.Timeout | undefined

  constructor(health: Health, hub: Hub, lanes: Pick<Lanes, 'all'>) {
    this.#health = health
    this.#hub = hub
    this.#lanes = lanes
    health.onChange = () => this.sendSoon()
  }

  take(): ToLane {
    const subscribers: Record<string, string[]> = {}
    for (const [event, entry] of Object.entries(this.#hub.topology())) subscribers[event] = entry.subscribers
    return { type: 'snapshot', dump: this.#health.dump(), subscribers }
  }

  sendSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const snapshot = this.take()
      for (const lane of this.#lanes.all) if (lane.state === 'ready') lane.post(snapshot)
    }, SNAPSHOT_MS).unref()
  }
}
