import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'

/** For a supervisor: answers as long as the event loop of the listener's thread runs. Restart a process that does not answer. */
export default class ReportLiveness extends Plugin {
  static override thread = 'primary' as const
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/system/health/live', 'GET', this.report, {
      tags: ['system'],
      summary: 'Whether the process is alive',
      description: '200 as long as the process can answer. A process manager starts it again when nothing comes.',
    })
  }

  report(_data: Data, context: HttpContext) {
    if (context.operator === null) return { success: true, data: { live: true } }
    return { success: true, data: { live: true, uptime_sec: Math.round(process.uptime() * 1000) / 1000 } }
  }
}
