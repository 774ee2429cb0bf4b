import { answerAssistant, HttpError, type LogLine, type ProcessView, plugin, type Tools } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf, isProduction } from '../configuration.ts'
import { jobsReport, runNow, runsOf } from '../job-reports.ts'
import { lintReport } from '../lint-report.ts'

/** Log lines that are kept for assistants. */
const LOG_LINES_MAX = 500
/** Runs of a job that an assistant is shown. */
const JOB_RUNS_MAX = 10
/** Hosts to listen on that are no address to send to. */
const ANY_HOST = new Set(['0.0.0.0', '::'])

const options = {
  rawBody: true,
  timeoutMs: 120_000,
  throws: { 403: { description: 'It wants SYSTEM_TOKEN in production', code: 'MCP_CLOSED' } },
  tags: ['system'],
  summary: 'For coding assistants',
  description: 'The Model Context Protocol over Streamable HTTP.',
}

/** `/system/mcp`: what coding assistants see of the process, and do in it, by the Model Context Protocol. */
export default plugin(
  ({ config, event_bus, http, logger, registry, scheduler }) => {
    const mode = config.get('SYSTEM_MCP', { default: 'read' })
    if (!['off', 'read', 'write'].includes(mode)) throw new Error('SYSTEM_MCP: expected off, read or write')
    if (mode === 'off') return
    const logs: LogLine[] = []
    let isListening = false
    if (!isProduction(config)) listen()

    http.post('/system/mcp', options, async (_data, context) => {
      if (isProduction(config) && context.operator !== 'token') {
        throw new HttpError(
          403,
          'Closed in production: set SYSTEM_TOKEN and send it as a Bearer token, or start with npm run dev or NODE_ENV=development',
          { code: 'MCP_CLOSED' },
        )
      }
      listen()
      const { method, path, headers, rawBody, signal } = context
      const own = new Headers(headers)
      own.delete('content-length')
      const body = new Uint8Array(rawBody)
      const request = new Request(`http://localhost${path}`, { method, headers: own, body, signal })
      const response = await answerAssistant(request, await viewFor(headers.host ?? ''))
      context.setStatus(response.status)
      const type = response.headers.get('content-type')
      // A notification is accepted without a body.
      if (type === null) return context.sendBinary(new Uint8Array(0), 'text/plain')
      context.sendBinary(new Uint8Array(await response.arrayBuffer()), type)
    })

    async function viewFor(asked: string): Promise<ProcessView> {
      const { title, version } = await apiInfo(config)
      return {
        title,
        version,
        registry,
        bus: event_bus,
        logs,
        jobs: (job) =>
          job === undefined ? jobsReport({ registry, scheduler }) : runsOf({ registry, scheduler }, job, JOB_RUNS_MAX),
        runJob: async (job) => {
          const run = await runNow(scheduler, job, 'an assistant')
          logger.info('An assistant has run a job', { job, id: run.id })
          return run
        },
        lint: () => lintReport({ config, event_bus, registry }),
        mayWrite: mode === 'write',
        url: addressOf(config, asked),
        domainsDirs: domainsDirsOf(config),
      }
    }

    /** In production not before somebody asks: a sink costs something with each line. */
    function listen(): void {
      if (isListening) return
      isListening = true
      logger.addSink((level, message, timestamp, identity) => {
        logs.push({ level, message, timestamp, identity })
        if (logs.length > LOG_LINES_MAX) logs.shift()
      })
    }
  },
  { thread: 'primary' },
)

/** Where the process serves its routes: by its settings, and with port 0 by what the assistant has asked. */
function addressOf(config: Tools['config'], asked: string): string {
  const host = config.get('HTTP_HOST', { default: '127.0.0.1' })
  const port = config.get('HTTP_PORT', { default: 8000 })
  const name = ANY_HOST.has(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port === 0 ? (asked.split(':').at(-1) ?? '') : port}`
}
