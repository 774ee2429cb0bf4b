// The tool `registry`.
import type { Registry, ToolStatus } from '../../contracts/registry.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { ToolUses, USES_BYTES, USES_MEMORY } from '../../transport/memory/tool-uses.ts'

const STATUSES: readonly ToolStatus[] = ['OK', 'FAIL', 'DEAD']

export default class RegistryTool implements Tool {
  readonly name = 'registry'
  #runtime: ToolRuntime
  #uses: ToolUses

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
    this.#uses = new ToolUses(runtime.sharedMemory(USES_MEMORY, USES_BYTES))
  }

  api(): Registry {
    const { host } = this.#runtime
    const { services } = host
    return {
      addMetricsSink: (sink) => {
        if (typeof sink !== 'function') throw new TypeError('registry.addMetricsSink: the sink must be a function')
        return host.addMetricsSink(sink)
      },
      addRequestSink: (sink) => {
        if (typeof sink !== 'function') throw new TypeError('registry.addRequestSink: the sink must be a function')
        return host.addRequestSink(sink)
      },
      getMetrics: () => host.metrics(),
      getSystemDump: () => host.systemDump(),
      getUncalledTools: () => this.#uncalledTools(),
      getLanes: () => services.lanes(),
      getReadiness: () => services.readiness(),
      getCounters: () => services.counters(),
      getRoutes: () => services.routeList(),
      getRequests: async (filter = {}) => services.requests(filter),
      getRequest: async (id) => services.request(id),
      getWorkReport: async (span) => services.workReport(span),
      updateToolStatus: (tool, status, options) => {
        const message = options?.message ?? null
        if (typeof tool !== 'string' || tool === '') throw invalid('the tool must be a name', tool)
        if (!STATUSES.includes(status)) throw invalid(`the status must be one of ${STATUSES.join(', ')}`, status)
        if (message !== null && typeof message !== 'string') throw invalid('the message must be a string', message)
        host.updateToolStatus(tool, status, message)
      },
    }
  }

  #uncalledTools(): Record<string, string[]> {
    const uncalled: Record<string, string[]> = {}
    for (const [plugin, health] of Object.entries(this.#runtime.host.systemDump().plugins)) {
      if (health.status !== 'OK') continue
      const tools = health.tools.filter((tool) => !this.#uses.has(plugin, tool))
      if (tools.length > 0) uncalled[plugin] = tools
    }
    return uncalled
  }
}

function invalid(wanted: string, got: unknown): TypeError {
  return new TypeError(`registry.updateToolStatus: ${wanted}, got ${typeof got === 'string' ? `"${got}"` : typeof got}`)
}
