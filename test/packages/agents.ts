// npm run test:agents: one request with each agent of `src/guides/agents.md`, as it is sold; prints what arrives. By hand.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { ProcessGuard } from '../chaos/process-guard.ts'
import { NodeProgram } from '../nodes/node-program.ts'
import { startHeddle } from '../support/heddle.ts'
import { otlpReceiver } from '../support/otlp/receiver.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { until } from '../support/until.ts'

const USAGE = `npm run test:agents -- [--node 22] [--folder path] [agent…]
  --node 22      (default: 22)
  --folder path  where the packages are installed, and stay for the next time`
const [PRELOAD, MAIN] = ['preload.cjs', 'main.ts'].map((name) =>
  fileURLToPath(new URL(`../../src/${name}`, import.meta.url)),
) as [string, string]
const TRACE = '11111111111111111111111111111111'
const CALLER = '2222222222222222'

interface Span {
  trace: string
  id: string
  parent: string
  name: string
}

interface Agent {
  readonly packages: readonly string[]
  /** @param url of the receiver */
  env(url: string): Record<string, string>
  /** A file that `NODE_OPTIONS` names. */
  readonly preload?: string
  /** What stands above the plugin, and makes a span of a request. */
  readonly traced?: string
}

const INSTRUMENTATION = '@opentelemetry/auto-instrumentations-node'
const OTEL: Agent = {
  packages: ['@opentelemetry/api', INSTRUMENTATION],
  env: (url) => ({
    NODE_OPTIONS: `--require ${INSTRUMENTATION}/register`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces`,
    OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'undici,http,pg',
    OTEL_NODE_RESOURCE_DETECTORS: 'none',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'none',
    LANE_ENV: 'OTEL_*',
  }),
}
const AGENTS: Record<string, Agent> = {
  otel: OTEL,
  'otel-once': { ...OTEL, env: (url) => ({ ...OTEL.env(url), OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'pg' }) },
  datadog: {
    packages: ['dd-trace'],
    env: (url) => ({
      NODE_OPTIONS: '--require dd-trace/init',
      DD_TRACE_AGENT_URL: url,
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_TRACE_DISABLED_INSTRUMENTATIONS: 'dns,net',
      LANE_ENV: 'DD_*',
    }),
    traced: `import tracer from 'dd-trace'
const traced = (resource, handle) => (data, context) =>
  tracer.trace('request', { resource, childOf: tracer.extract('http_headers', context.headers) }, () => handle(data, context))`,
  },
  sentry: {
    packages: ['@sentry/node'],
    preload: `import * as Sentry from '@sentry/node'\nSentry.init({ dsn: process.env.SENTRY_DSN, tracesSampleRate: 1 })`,
    env: (url) => ({ SENTRY_DSN: `${url.replace('//', '//key@')}/1`, LANE_ENV: 'SENTRY_*' }),
    traced: `import * as Sentry from '@sentry/node'
const traced = (name, handle) => (data, context) =>
  Sentry.continueTrace({ sentryTrace: context.headers['sentry-trace'], baggage: context.headers.baggage }, () =>
    Sentry.startSpan({ name, op: 'http.server' }, () => handle(data, context)))`,
  },
  newrelic: {
    packages: ['newrelic'],
    env: () => ({
      NODE_OPTIONS: '--require newrelic',
      NEW_RELIC_APP_NAME: 'shop',
      NEW_RELIC_LICENSE_KEY: 'a'.repeat(40),
      NEW_RELIC_HOST: 'localhost',
      LANE_ENV: 'NEW_RELIC_*',
    }),
  },
}

const pluginOf = ({ traced }: Agent, database: string, price: string): string => `import { plugin } from 'heddle'
import pg from 'pg'
${traced ?? 'const traced = (_name, handle) => handle'}
const pool = new pg.Pool({ connectionString: ${JSON.stringify(database)}, max: 1 })
export default plugin(({ http }) => {
  http.get('/orders/:id', traced('GET /orders/:id', async ({ id }) => {
    await pool.query('SELECT $1::text AS id', [id])
    return { data: await (await fetch(${JSON.stringify(price)})).json() }
  }))
})`

/** Takes what agents send, in their own formats, and is the other service, which answers with the headers of the trace. */
async function receive(guard: ProcessGuard, folder: string): Promise<{ url: string; spans: Span[] }> {
  const spans: Span[] = []
  const { decode } = createRequire(join(folder, 'x.js'))('@msgpack/msgpack')
  const hex = (id: bigint | number): string => BigInt(id).toString(16).padStart(16, '0')
  const formats: Record<string, (body: Buffer) => void> = {
    '/v1/traces': (body) => {
      for (const { scopeSpans } of JSON.parse(body.toString()).resourceSpans)
        for (const { scope, spans: found } of scopeSpans)
          for (const { traceId: trace, spanId: id, parentSpanId: parent = '', name } of found)
            spans.push({ trace, id, parent, name: `${name} [${scope.name.split('/').at(-1)}]` })
    },
    '/v0.4/traces': (body) => {
      for (const { trace_id, span_id, parent_id, name, resource, meta } of decode(body, { useBigInt64: true }).flat())
        spans.push({
          trace: (meta['_dd.p.tid'] ?? '') + hex(trace_id),
          id: hex(span_id),
          parent: BigInt(parent_id) === 0n ? '' : hex(parent_id),
          name: `${name} ${resource} [${meta.component ?? 'dd-trace'}]`,
        })
    },
    '/api/1/envelope/': (body) => {
      for (const line of body.toString().split('\n').filter(Boolean))
        for (const { trace_id: trace, span_id: id, parent_span_id: parent = '', name } of JSON.parse(line).items ?? [])
          if (id !== undefined) spans.push({ trace, id, parent, name: `${name} [sentry]` })
    },
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { pathname } = new URL(request.url!, 'http://localhost')
    formats[pathname]?.(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body)
    const { traceparent, 'sentry-trace': sentry } = request.headers
    response.end(pathname === '/price' ? JSON.stringify({ traceparent, sentry }) : '{}')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  guard.after(async () => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans }
}

function treeOf(spans: readonly Span[]): string[] {
  const write = (span: Span, depth: number): string[] => [
    `${'  '.repeat(depth)}${span.name}`,
    ...spans.filter(({ parent }) => parent === span.id).flatMap((child) => write(child, depth + 1)),
  ]
  const tops = spans.filter(({ parent }) => spans.every(({ id }) => id !== parent))
  return tops.flatMap((span) => [`trace ${span.trace.slice(0, 8)}…, below ${span.parent || 'none'}`, ...write(span, 1)])
}

/** @param isTraced by heddle's own spans, too */
async function tryAgent(agent: Agent, isTraced: boolean, folder: string, node: NodeProgram, database: string) {
  const guard = new ProcessGuard()
  try {
    const { url, spans } = await receive(guard, folder)
    const own = await otlpReceiver(guard)
    const project = join(folder, 'service')
    mkdirSync(join(project, 'domains/shop/plugins'), { recursive: true })
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(project, 'agent.mjs'), agent.preload ?? '')
    writeFileSync(join(project, 'domains/shop/plugins/show-order.ts'), pluginOf(agent, database, `${url}/price`))
    const heddle = await startHeddle(guard, {
      project,
      command: [join(node.bin, 'node'), '--require', PRELOAD, MAIN],
      domains: [join(project, 'domains')],
      lanes: 1,
      env: {
        ...(agent.preload === undefined ? {} : { NODE_OPTIONS: '--import ./agent.mjs' }),
        ...(isTraced ? { OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: own.endpoint } : {}),
        ...agent.env(url),
      },
    })
    const headers = { traceparent: `00-${TRACE}-${CALLER}-01`, 'sentry-trace': `${TRACE}-${CALLER}-1` }
    const { body } = await heddle.json('/orders/7', { headers })
    console.log(`sent on: ${JSON.stringify(body.data ?? body)}`)
    const isThere = (): boolean => spans.some(({ name }) => /SELECT|query/.test(name))
    await until(isThere, 'the spans of the agent', 10_000).catch(() => {})
    await heddle.stop()
    for (const { traceId: trace, spanId: id, parentSpanId: parent, name } of own.spans)
      spans.push({ trace, id, parent, name: `${name} [heddle]` })
    console.log(treeOf(spans).join('\n') || `nothing arrived\n${heddle.errors.join('').slice(0, 600)}`)
  } finally {
    await guard.end()
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { node: { type: 'string', default: '22' }, folder: { type: 'string' }, help: { type: 'boolean' } },
  })
  if (values.help) return console.log(USAGE)
  const guard = new ProcessGuard()
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'heddle-agents-'))
  if (values.folder === undefined) guard.after(async () => rmSync(folder, { recursive: true, force: true }))
  try {
    const node = await NodeProgram.provide(values.node)
    const chosen = Object.entries(AGENTS).filter(([name]) => positionals.length === 0 || positionals.includes(name))
    const packages = ['pg', '@msgpack/msgpack', ...new Set(chosen.flatMap(([, agent]) => agent.packages))]
    mkdirSync(folder, { recursive: true })
    if (!existsSync(join(folder, 'package.json'))) writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages]
    spawnSync('npm', args, { cwd: folder, stdio: 'inherit', env: { ...process.env, ...node.env } })
    const server = await postgresServer({ after: (end) => guard.after(async () => end()), skip: console.log })
    if (server === null) return
    const { user, password, host, port, database } = server
    for (const [name, agent] of chosen) {
      for (const isTraced of [false, true]) {
        console.log(`\n== ${name}${isTraced ? ', with OTEL_ENABLED=true' : ''}`)
        await tryAgent(agent, isTraced, folder, node, `postgres://${user}:${password}@${host}:${port}/${database}`)
      }
    }
  } finally {
    await guard.end()
  }
}

void main()
