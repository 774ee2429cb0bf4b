import type { PluginHealth, SystemDump, ToolStatus } from '../contracts/registry.ts'
import { STATUS_DEAD, STATUS_FAIL, STATUS_OK, type StatusTable } from '../shm/status-table.ts'

const WORDS: Record<ToolStatus, number> = { OK: STATUS_OK, FAIL: STATUS_FAIL, DEAD: STATUS_DEAD }
const NAMES: readonly ToolStatus[] = ['OK', 'FAIL', 'DEAD']

/** The health of the process, kept in the primary. The words in shared memory are the truth; the messages belong to them. */
export class Health {
  readonly #statuses: StatusTable
  readonly #toolIndex: (tool: string) => number
  readonly #toolNames: () => readonly string[]
  readonly #lanes: () => Record<string, number>
  readonly #onChange: () => void
  /** Last message of each tool and status: messages of two threads may arrive in either order. */
  readonly #messages = new Map<string, string | null>()
  readonly #plugins = new Map<string, PluginHealth>()

  constructor(options: {
    statuses: StatusTable
    toolIndex: (tool: string) => number
    toolNames: () => readonly string[]
    lanes: () => Record<string, number>
    onChange: () => void
  }) {
    this.#statuses = options.statuses
    this.#toolIndex = options.toolIndex
    this.#toolNames = options.toolNames
    this.#lanes = options.lanes
    this.#onChange = options.onChange
  }

  /** A tool call changed the word already; this brings the message. */
  noteTool(tool: string, status: ToolStatus, message: string | null): void {
    this.#messages.set(`${tool} ${status}`, message)
    this.#onChange()
  }

  /** Sets word and message. An unknown tool is ignored: it may belong to a lane's older code. */
  setTool(tool: string, status: ToolStatus, message: string | null): void {
    const index = this.#toolIndex(tool)
    if (index < 0) return
    this.#statuses.set(index, WORDS[status])
    this.noteTool(tool, status, message)
  }

  toolStatus(tool: string): ToolStatus {
    return NAMES[this.#statuses.get(this.#toolIndex(tool))]!
  }

  setPlugins(plugins: Record<string, PluginHealth>): void {
    for (const [name, health] of Object.entries(plugins)) this.#plugins.set(name, health)
    this.#onChange()
  }

  dump(): SystemDump {
    const tools: SystemDump['tools'] = {}
    for (const name of this.#toolNames()) {
      const status = this.toolStatus(name)
      tools[name] = { status, message: this.#messages.get(`${name} ${status}`) ?? null }
    }
    return {
      tools,
      plugins: Object.fromEntries([...this.#plugins].sort(([a], [b]) => (a < b ? -1 : 1))),
      lanes: this.#lanes(),
    }
  }
}
