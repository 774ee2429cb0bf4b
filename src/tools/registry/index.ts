import type { Registry, ToolStatus } from '../../contracts/registry.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'

const STATUSES: readonly ToolStatus[] = ['OK', 'FAIL', 'DEAD']

export default class RegistryTool implements Tool {
  readonly name = 'registry'
  #runtime: ToolRuntime

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(): Registry {
    const { host } = this.#runtime
    return {
      addMetricsSink: (sink) => {
        if (typeof sink !== 'function') throw new TypeError('registry.addMetricsSink: the sink must be a function')
        return host.addMetricsSink(sink)
      },
      getMetrics: () => host.metrics(),
      getSystemDump: () => host.systemDump(),
      getLanes: () => host.lanes(),
      getReadiness: () => host.readiness(),
      getRoutes: () => host.routeList(),
      updateToolStatus: (tool, status, options) => {
        const message = options?.message ?? null
        if (typeof tool !== 'string' || tool === '') throw invalid('the tool must be a name', tool)
        if (!STATUSES.includes(status)) throw invalid(`the status must be one of ${STATUSES.join(', ')}`, status)
        if (message !== null && typeof message !== 'string') throw invalid('the message must be a string', message)
        host.updateToolStatus(tool, status, message)
      },
    }
  }
}

function invalid(wanted: string, got: unknown): TypeError {
  return new TypeError(`registry.updateToolStatus: ${wanted}, got ${typeof got === 'string' ? `"${got}"` : typeof got}`)
}
