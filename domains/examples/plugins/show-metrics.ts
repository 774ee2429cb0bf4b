import { plugin } from '#heddle'

/** `GET /system/metrics`: the last 1000 tool calls, aggregated by method. */
export default plugin(({ http, registry }) => {
  http.get(
    '/system/metrics',
    {
      tags: ['system'],
      summary: 'Tool calls by method',
      description: 'The last 1000 calls of tools: how many, how many failed, and how long they took on average.',
    },
    () => {
      const sums = new Map<string, { calls: number; errors: number; totalMs: number }>()
      for (const { tool, method, success, duration_ms } of registry.getMetrics()) {
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
    },
  )
})
