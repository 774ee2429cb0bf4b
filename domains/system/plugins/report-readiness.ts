import { plugin } from '#heddle'

/** A dead lane is replaced within a second, unless it keeps dying. */
const RETRY_AFTER_SEC = 1

const options = {
  tags: ['system'],
  summary: 'Whether the process should get requests',
  description: '200 when it should, else 503 with the reasons. For load balancers.',
}

/** For a load balancer: 200 when this process can take requests, else 503 with the reasons. */
export default plugin(
  ({ http, registry }) => {
    http.get('/system/health/ready', options, async (_data, context) => {
      const readiness = await registry.getReadiness()
      // The reasons are for those who may see the rest of `/system`.
      const isStranger = context.operator === null
      if (readiness.ready) return { success: true, data: isStranger ? { ready: true } : readiness }
      context.setStatus(503)
      context.setHeader('retry-after', String(RETRY_AFTER_SEC))
      if (isStranger) return { success: false, error: 'Not ready', ready: false }
      return { success: false, error: `Not ready: ${readiness.reasons.join(', ')}`, ...readiness }
    })
  },
  { thread: 'primary' },
)
