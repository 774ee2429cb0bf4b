import {
  answerAssistant,
  type Data,
  type HttpContext,
  HttpError,
  type LogLine,
  Plugin,
  type ProcessView,
  type Tools,
} from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf, isProduction } from '../configuration.ts'
import { lintReport } from '../lint-report.ts'

/** Log lines that are kept for assistants. */
const LOG_LINES_MAX = 500
/** Hosts to listen on that are no address to send to. */
const ANY_HOST = new Set(['0.0.0.0', '::'])

/** `/system/mcp`: what coding assistants see of the process, and do in it, by the Model Context Protocol. */
export default class ServeAssistants extends Plugin {
  static override thread = 'primary' as const
  readonly #tools: Tools
  readonly #mode: string
  readonly #isProduction: boolean
  readonly #logs: LogLine[] = []
  #isListening = false

  constructor({ config, event_bus, http, logger, registry }: Tools) {
    super()
    this.#tools = { config, event_bus, http, logger, registry } as Tools
    this.#mode = config.get('SYSTEM_MCP', { default: 'read' })
    this.#isProduction = isProduction(config)
  }

  override onBoot() {
    if (!['off', 'read', 'write'].includes(this.#mode)) throw new Error('SYSTEM_MCP: expected off, read or write')
    if (this.#mode === 'off') return
    this.#tools.http.addEndpoint('/system/mcp', 'POST', this.answer, {
      rawBody: true,
      timeoutMs: 120_000,
      throws: { 403: { description: 'It wants SYSTEM_TOKEN in production', code: 'MCP_CLOSED' } },
      tags: ['system'],
      summary: 'For coding assistants',
      description: 'The Model Context Protocol over Streamable HTTP.',
    })
    if (!this.#isProduction) this.#listen()
  }

  async answer(_data: Data, context: HttpContext) {
    if (this.#isProduction && context.operator !== 'token') {
      throw new HttpError(
        403,
        'Closed in production: set SYSTEM_TOKEN and send it as a Bearer token, or start with npm run dev or NODE_ENV=development',
        { code: 'MCP_CLOSED' },
      )
    }
    this.#listen()
    const { method, path, headers, rawBody, signal } = context
    const own = new Headers(headers)
    own.delete('content-length')
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: own,
      body: new Uint8Array(rawBody),
      signal,
    })
    const response = await answerAssistant(request, await this.#view(context))
    context.setStatus(response.status)
    const type = response.headers.get('content-type')
    // A notification is accepted without a body.
    if (type === null) return context.sendBinary(new Uint8Array(0), 'text/plain')
    context.sendBinary(new Uint8Array(await response.arrayBuffer()), type)
  }

  async #view({ headers }: HttpContext): Promise<ProcessView> {
    const { config, event_bus: bus, registry } = this.#tools
    const { title, version } = await apiInfo(config)
    return {
      title,
      version,
      registry,
      bus,
      logs: this.#logs,
      lint: () => lintReport(this.#tools),
      mayWrite: this.#mode === 'write',
      url: this.#address(headers.host ?? ''),
      domainsDirs: domainsDirsOf(config),
    }
  }

  /** Where the process serves its routes: by its settings, and with port 0 by what the assistant has asked. */
  #address(asked: string): string {
    const { config } = this.#tools
    const host = config.get('HTTP_HOST', { default: '127.0.0.1' })
    const port = config.get('HTTP_PORT', { default: 8000 })
    const name = ANY_HOST.has(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
    return `http://${name}:${port === 0 ? (asked.split(':').at(-1) ?? '') : port}`
  }

  /** In production not before somebody asks: a sink costs something with each line. */
  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    this.#tools.logger.addSink((level, message, timestamp, identity) => {
      this.#logs.push({ level, message, timestamp, identity })
      if (this.#logs.length > LOG_LINES_MAX) this.#logs.shift()
    })
  }
}
