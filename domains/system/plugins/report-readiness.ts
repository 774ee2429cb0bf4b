import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'

/** A dead lane is replaced within a second, unless it keeps dying. */
const RETRY_AFTER_SEC = 1

/** For a load balancer: 200 when this process can take requests, else 503 with the reasons. */
export default class ReportReadiness extends Plugin {
  static override thread = 'primary' as const
  #http
  #registry

  constructor({ http, registry }: Tools) {
    super()
    this.#http = http
    this.#registry = registry
  }

  override onBoot() {
    this.#http.addEndpoint('/system/health/ready', 'GET', this.report, {
      tags: ['system'],
      summary: 'Whether the process should get requests',
      description: '200 when it should, else 503 with the reasons. For load balancers.',
    })
  }

  async report(_data: Data, context: HttpContext) {
    const readiness = await this.#registry.getReadiness()
    // The reasons are for those who may see the rest of `/system`.
    const isStranger = context.operator === null
    if (readiness.ready) return { success: true, data: isStranger ? { ready: true } : readiness }
    context.setStatus(503)
    context.setHeader('retry-after', String(RETRY_AFTER_SEC))
    if (isStranger) return { success: false, error: 'Not ready', ready: false }
    return { success: false, error: `Not ready: ${readiness.reasons.join(', ')}`, ...readiness }
  }
}
