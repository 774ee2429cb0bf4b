import { Plugin, type Tools } from '#heddle'

/** `GET /system/metrics`: the last 1000 tool calls, aggregated by method. */
export default class ShowMetrics extends Plugin {
  #http
  #registry

  constructor({ http, registry }: Tools) {
    super()
    this.#http = http
    this.#registry = registry
  }

  override onBoot() {
    this.#http.addEndpoint('/system/metrics', 'GET', this.show, { tags: ['system'], summary: 'Tool calls by method' })
  }

  show() {
    const sums = new Map<string, { calls: number; errors: number; totalMs: number }>()
    for (const { tool, method, success, duration_ms } of this.#registry.getMetrics()) {
      const sum = sums.get(`${tool}.${method}`) ?? { calls: 0, errors: 0, totalMs: 0 }
      sum.calls++
      if (!success) sum.errors++
      sum.totalMs += duration_ms
      sums.set(`${tool}.${method}`, sum)
    }
    const data: Record<string, { calls: number; errors: number; avg_ms: number }> = {}
    for (const [call, { calls, errors, totalMs }] of sums) {
      data[call] = { calls, errors, avg_ms: Math.round((totalMs / calls) * 100) / 100 }
    }
    return { success: true, data }
  }
}
