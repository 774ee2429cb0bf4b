// The tools of a thread, given to its plugins.
import type { Awaitable, Owner } from '../../contracts/common.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import type { CausalContext, DescribeCall } from '../../contracts/tracing.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { headOf, messageOf, readable } from '../../core/errors/description.ts'
import { loadTool, type ToolFolder } from './discover.ts'
import type { Meter } from './proxy.ts'

/**
 * A copy of a tool's object for one plugin, which reports the plugin's first call. Until then each method is a stand-in, and the first
 * call puts all real methods into their places: from then on a call costs the same as without it. A method that was taken out of the
 * object before keeps one check.
 */
export function tellingFirstCall<T extends object>(tool: T, onFirstCall: () => void): T {
  const given: Record<string, unknown> = {}
  const real: Record<string, unknown> = {}
  let isCalled = false
  const called = () => {
    isCalled = true
    Object.assign(given, real)
    onFirstCall()
  }
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(tool))) {
    const method: unknown = member.value
    if (typeof method !== 'function') Object.defineProperty(given, name, member)
    else {
      real[name] = method
      given[name] = (...args: unknown[]) => {
        if (!isCalled) called()
        return method(...args)
      }
    }
  }
  return given as T
}

/** Makes the runtime of a tool. */
type RuntimeFactory = (toolName: () => string) => ToolRuntime

interface Installed {
  readonly tool: Tool
  readonly index: number
  readonly folder: string
  /** One wrapped object for all plugins, for a tool without an `api` for each. */
  shared: object | undefined
  /** Why its boot failed. */
  fault: string | null
  /** The fault may pass: the tool is given to plugins all the same, and booted again. */
  isPassing: boolean
}

/** The tools of one thread: finds, constructs and boots them, and gives them to plugins as metered objects. */
export class Toolbox {
  readonly #meter: Meter
  readonly #onFirstCall: (plugin: string, tool: string) => void
  /** The tool that boots now. */
  booting: string | null = null
  readonly #installed = new Map<string, Installed>()

  /** @param onFirstCall told when a plugin of this thread calls a tool for the first time */
  constructor(meter: Meter, onFirstCall: (plugin: string, tool: string) => void = () => {}) {
    this.#meter = meter
    this.#onFirstCall = onFirstCall
  }

  /**
   * Makes an instance of every tool.
   * @throws TOOL_DUPLICATE naming both folders, TOOL_INVALID
   */
  async install(folders: readonly ToolFolder[], runtimeFor: RuntimeFactory): Promise<void> {
    for (const folder of folders) {
      const tool = await loadTool(folder, runtimeFor)
      const before = this.#installed.get(tool.name)
      if (before !== undefined) {
        throw new HeddleError(
          'TOOL_DUPLICATE',
          `Two folders hold a tool named ${tool.name}: ${before.folder} and ${folder.path}. Move one of them out of the tools folder.`,
        )
      }
      this.#installed.set(tool.name, {
        tool,
        index: this.#installed.size,
        folder: folder.path,
        shared: undefined,
        fault: null,
        isPassing: false,
      })
    }
  }

  /** Boots all tools, one after another. A tool that fails is reported and stays: its calls fail with the reason. */
  async boot(onFault: (tool: string, error: unknown) => void, only?: string): Promise<void> {
    for (const [name, installed] of this.#installed) {
      if (only !== undefined && name !== only) continue
      this.booting = name
      try {
        await bootTool(installed)
      } catch (error) {
        onFault(name, error)
      }
    }
    this.booting = null
  }

  /** True when the tool's boot failed for a reason that may pass. */
  mayBootLater(name: string): boolean {
    return this.#installed.get(name)?.isPassing === true
  }

  /** Boots a tool again whose boot has failed. @throws the error of its boot */
  bootAgain(name: string): Promise<void> {
    return bootTool(this.#installed.get(name)!)
  }

  get names(): string[] {
    return [...this.#installed.keys()]
  }

  /** The methods that a plugin gets of a tool; none where that cannot be told. */
  methodsOf(name: string): string[] {
    // None where it is not installed, or its boot has failed.
    const given = readable(() => this.for({ name, instance: undefined }, name)) ?? {}
    const isMethod = (member: string): boolean =>
      typeof Object.getOwnPropertyDescriptor(given, member)?.value === 'function' && member !== 'healthCheck'
    return Object.keys(given).filter(isMethod)
  }

  indexOf(name: string): number {
    return this.#installed.get(name)?.index ?? -1
  }

  get(name: string): Tool | undefined {
    return this.#installed.get(name)?.tool
  }

  /** Answers a `callPrimary` of a tool's instance in another thread. */
  serve(name: string, method: string, args: readonly unknown[]): unknown {
    const tool = this.#installed.get(name)?.tool
    if (tool?.serve === undefined) throw new HeddleError('TOOL_MISSING', `No tool ${name} serves ${method}`)
    return tool.serve(method, args)
  }

  /** Why the process should get no requests, as far as its tools know. */
  get unreadyReasons(): string[] {
    return [...this.#installed].flatMap(([name, { tool }]) => {
      const reason = tool.unreadyReason?.() ?? null
      return reason === null ? [] : [`tool ${name}: ${reason}`]
    })
  }

  /** Whether a tool that gives tokens refuses the one with these claims by now. Rejects while that cannot be told. */
  isRevoked(claims: object): Awaitable<boolean> {
    for (const { tool } of this.#installed.values()) if (tool.isRevoked !== undefined) return tool.isRevoked(claims)
    return false
  }

  /** Tells all tools of a lane that what ran in it was stopped. @param context undefined when it is not known what that was */
  stopped(context: CausalContext | undefined): void {
    for (const { tool } of this.#installed.values()) tool.stopped?.(context)
  }

  /** Tells all tools that a thread has died. @param threadId of worker_threads */
  threadGone(threadId: number): void {
    for (const { tool } of this.#installed.values()) tool.threadGone?.(threadId)
  }

  /** A tool as one owner gets it. @throws TOOL_MISSING, TOOL_UNAVAILABLE */
  for(owner: Owner, name: string): object {
    const installed = this.#installed.get(name)
    if (installed === undefined) throw new HeddleError('TOOL_MISSING', `Missing tool: ${name}`)
    if (installed.fault !== null && !installed.isPassing)
      throw new HeddleError('TOOL_UNAVAILABLE', `Tool ${name} did not boot: ${installed.fault}`)
    const { tool, index } = installed
    if (tool.api !== undefined) {
      const api = tool.api(owner)
      // Every tool that has a health check offers it, also when its API object is made for the owner.
      const { healthCheck } = tool
      const checked =
        healthCheck === undefined || 'healthCheck' in api ? api : { ...api, healthCheck: healthCheck.bind(tool) }
      return this.#meter.wrap(name, index, checked, describeOf(tool))
    }
    installed.shared ??= this.#meter.wrap(name, index, tool, describeOf(tool))
    return installed.shared
  }

  instrument<T extends object>(name: string, target: T): T {
    return (
      this.#meter.wrapAlike(name, target) ??
      this.#meter.wrap(name, this.indexOf(name), target, describeOf(this.get(name)))
    )
  }

  /** What a tool gives to another tool: without the meter. Undefined when it is not installed. */
  peer(owner: Owner, name: string): object | undefined {
    const tool = this.get(name)
    return tool?.api === undefined ? tool : tool.api(owner)
  }

  /**
   * The object that a plugin's constructor destructures.
   * @param touched gets the names that it took
   */
  injection(owner: Owner, touched: Set<string>): object {
    const given = new Map<string, object>()
    return new Proxy(Object.create(null), {
      get: (_, name) => {
        if (typeof name !== 'string') return undefined
        touched.add(name)
        let tool = given.get(name)
        if (tool === undefined) {
          tool = tellingFirstCall(this.for(owner, name), () => this.#onFirstCall(owner.name, name))
          given.set(name, tool)
        }
        return tool
      },
      has: (_, name) => typeof name === 'string' && this.#installed.has(name),
      ownKeys: () => this.names,
      getOwnPropertyDescriptor: (_, name) => ({
        enumerable: typeof name === 'string' && this.#installed.has(name),
        configurable: true,
      }),
    })
  }

  /** Stops all tools, in the reverse order of their boot. */
  async stop(onFault: (tool: string, error: unknown) => void): Promise<void> {
    for (const [name, { tool }] of [...this.#installed].reverse()) {
      try {
        await tool.stop?.()
      } catch (error) {
        onFault(name, error)
      }
    }
  }
}

const describeOf = (tool: Tool | undefined): DescribeCall | undefined => tool?.describeCall?.bind(tool)

async function bootTool(installed: Installed): Promise<void> {
  try {
    await installed.tool.boot?.()
    installed.fault = null
    installed.isPassing = false
  } catch (error) {
    installed.fault = headOf(messageOf(error))
    installed.isPassing = (error as { isPassing?: unknown } | null)?.isPassing === true
    throw error
  }
}
