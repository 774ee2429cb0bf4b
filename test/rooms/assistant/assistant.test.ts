import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { plugin } from '#heddle/testing'
import ServeAssistants from '../../../domains/system/plugins/serve-assistants.ts'
import { folderOf } from '../../support/folder.ts'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const TOOLS =
  'await_idle call_endpoint contracts find_requests jobs lane_deaths lint logs manage_queue publish_event queues run_job trace why'

/** What the tests use of the SDK's own client. */
interface AssistantClient {
  connect(transport: unknown): Promise<void>
  listTools(): Promise<{
    tools: { name: string; inputSchema: { properties?: object }; annotations?: { readOnlyHint?: boolean } }[]
  }>
  callTool(call: { name: string; arguments: object }): Promise<{ content: { text: string }[]; isError?: boolean }>
  getInstructions(): string | undefined
  close(): Promise<void>
}

const MODULES = ['index', 'streamableHttp'].map((name) => `@modelcontextprotocol/sdk/client/${name}.js`)

/** It is an optional package. */
function isInstalled(): boolean {
  try {
    return createRequire(import.meta.url).resolve(MODULES[0]!) !== ''
  } catch {
    return false
  }
}

/** A scripted assistant. */
class Assistant {
  readonly client: AssistantClient

  constructor(client: AssistantClient) {
    this.client = client
  }

  static async connect(t: TestContext, url: string, token?: string): Promise<Assistant> {
    const modules = await Promise.all(MODULES.map((name) => import(name)))
    const { Client, StreamableHTTPClientTransport } = Object.assign({}, ...modules)
    const client: AssistantClient = new Client({ name: 'scripted', version: '1.0.0' })
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    await client.connect(new StreamableHTTPClientTransport(new URL('/system/mcp', url), { requestInit: { headers } }))
    t.after(() => client.close())
    return new Assistant(client)
  }

  /** The parsed answer of a tool. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
  async use(name: string, given: object = {}): Promise<any> {
    const { content, isError } = await this.client.callTool({ name, arguments: given })
    assert.notEqual(isError, true, content[0]!.text)
    return JSON.parse(content[0]!.text)
  }

  /** The first answer of a tool of which something can be had. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
  until(name: string, given: object, had: (answer: any) => unknown, what: string): Promise<any> {
    return until(async () => had(await this.use(name, given)), what, 30_000)
  }

  async refusal(name: string, given: object): Promise<string> {
    const { content, isError } = await this.client.callTool({ name, arguments: given })
    assert.equal(isError, true, content[0]!.text)
    return content[0]!.text
  }
}

const report = (line: string): string =>
  `export default class MakeReport extends Object {}
`.replace(
    'extends Object {}',
    `{
  constructor({ http, event_bus }) {
    this.http = http
    this.bus = event_bus
  }
  onBoot() {
    this.http.addEndpoint('/report/:name', 'GET', (data) => this.make(data))
    this.bus.subscribe('report.made', ({ rows }) => {
      if (rows < 0) throw new Error('There are no rows')
    })
  }
  async make({ name }) {
    let rows = name === 'large' ? 1 : 0
    ${line}
    await this.bus.publish('report.made', { rows: name === 'none' ? -1 : rows })
    return { success: true, rows }
  }
}`,
  )

const skip = isInstalled() ? false : 'the package @modelcontextprotocol/sdk is not installed'

test('an assistant finds an endless loop and sees that its mend works', { skip }, async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/make-report.ts': report('while (rows > 0) rows++') })
  const { child, logs } = await spawnHeddle(t, {
    domains: [folder, SHIPPED],
    lanes: 1,
    args: ['--watch'],
    env: { LANE_STALL_MS: '1500', HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db') },
  })
  const serving = await until(() => logs.find(({ msg }) => msg.startsWith('Serving on ')), 'it serves', 60_000)
  const assistant = await Assistant.connect(t, serving.msg.replace('Serving on ', ''))

  await t.test('it learns what it can do, and how', async () => {
    const { tools } = await assistant.client.listTools()
    assert.equal(
      tools
        .map(({ name }) => name)
        .sort()
        .join(' '),
      TOOLS,
    )
    assert.deepEqual(Object.keys(tools.find(({ name }) => name === 'why')!.inputSchema.properties!), ['request'])
    assert.ok(tools.every(({ annotations }) => annotations?.readOnlyHint === true))
    assert.match(assistant.client.getInstructions()!, /lane_deaths names the line/)
    const { routes, events } = await assistant.use('contracts')
    assert.ok(routes.includes('GET /report/:name (shop.MakeReport)'), routes.join('\n'))
    assert.ok(events.includes('user.created'))
    const whole = await assistant.use('contracts', { route: '/login', event: 'user.created' })
    assert.equal(whole.routes.find(({ path }: { path: string }) => path === '/login').schemas.body.type, 'object')
    assert.equal(whole.events['user.created'].payload.properties.email.type, 'string')
  })

  const since = new Date().toISOString()
  await t.test('the loop is found by its line', async () => {
    const { status, request_id } = await assistant.use('call_endpoint', { path: '/report/large', timeout_ms: 60_000 })
    assert.equal(status, 504)
    const place = 'shop/plugins/make-report.ts:14:'
    const death = await assistant.until('lane_deaths', { since }, ({ deaths }) => deaths[0], 'the death of the lane')
    assert.deepEqual([death.reason, death.guilty.plugin], ['stalled', 'shop.MakeReport'])
    assert.ok(death.guilty.line.includes(place), death.guilty.line)

    const failed = { status: 'failed', route: '/report' }
    const isIt = ({ id, status }: { id: string; status: number }) => id === request_id && status === 504
    await assistant.until('find_requests', failed, (requests) => requests.find(isIt), 'the failed request is kept')
    const told = ({ why }: { why: string[] }) => JSON.stringify(why).includes(place) && why
    const why = await assistant.until('why', { request: request_id }, told, 'why tells the line')
    assert.match(why.join('\n'), /Lane 0 died: its loop stood still.* of shop\.MakeReport at /)
    const logged = await assistant.use('logs', { level: 'ERROR', text: 'DIED' })
    assert.match(logged.at(-1).message, /Lane 0 died/)
  })

  await t.test('the mend is seen after the save', async () => {
    writeFileSync(join(folder, 'shop/plugins/make-report.ts'), report('rows = 5'))
    const isNew = ({ reload }: { reload: { at: string } | null }) => reload !== null && reload.at > since && reload
    const reload = await assistant.until('lane_deaths', { since }, isNew, 'the reload')
    assert.deepEqual([reload.ok, reload.error], [true, null])
    const { status, body, request_id } = await assistant.use('call_endpoint', {
      path: '/report/large',
      timeout_ms: 60_000,
    })
    assert.deepEqual([status, body], [200, { success: true, rows: 5 }])
    assert.deepEqual(await assistant.use('await_idle'), { idle: true })
    const [tree] = await assistant.use('trace', { id: request_id })
    assert.deepEqual(
      [tree.event, tree.emitter, tree.subscribers],
      ['report.made', 'shop.MakeReport', ['shop.MakeReport']],
    )
    assert.deepEqual((await assistant.use('why', { request: request_id })).why, [])
  })

  await t.test('what a request has caused is among its reasons', async () => {
    const { request_id } = await assistant.use('call_endpoint', { path: '/report/none' })
    const told = ({ why }: { why: string[] }) => /threw/.test(why.join()) && why
    const why = await assistant.until('why', { request: request_id }, told, 'the failure of the subscriber')
    assert.match(why.join('\n'), /attempt 1 at report\.made, threw Error: There are no rows\n.*make-report\.ts:9:/s)
  })

  await t.test('it may look and change nothing, and is told what it asks wrongly', async () => {
    assert.match(await assistant.refusal('call_endpoint', { method: 'POST', path: '/users' }), /SYSTEM_MCP=write/)
    assert.match(await assistant.refusal('publish_event', { event: 'a.b', payload: {} }), /SYSTEM_MCP=write/)
    assert.match(await assistant.refusal('run_job', { job: 'users.SummarizeDay/daily-summary' }), /SYSTEM_MCP=write/)
    const pausing = { action: 'pause', event: 'report.made' }
    assert.match(await assistant.refusal('manage_queue', pausing), /SYSTEM_MCP=write/)
    assert.match(await assistant.refusal('why', { request: 'req_nobody' }), /Nothing is kept of req_nobody/)
    assert.match(await assistant.refusal('call_endpoint', { path: 'http://example.com/' }), /path/)
    assert.match(await assistant.refusal('logs', { since: 'yesterday' }), /is no time/)
    assert.ok(Array.isArray((await assistant.use('lint')).findings))
  })

  child.kill('SIGTERM')
  await once(child, 'exit')
})

test('in production an assistant needs the token; told to, it writes', { skip }, async (t) => {
  const env = {
    NODE_ENV: 'production',
    SYSTEM_TOKEN: 'a-token-of-the-tests-of-assistants',
    AUTH_SECRET_KEY: 'x'.repeat(40),
    SYSTEM_MCP: 'write',
  }
  const heddle = await startHeddle(t, { lanes: 1, env })
  await assert.rejects(Assistant.connect(t, heddle.url), /401|token|Unauthorized/)
  const assistant = await Assistant.connect(t, heddle.url, env.SYSTEM_TOKEN)
  const { tools } = await assistant.client.listTools()
  assert.equal(tools.find(({ name }) => name === 'publish_event')!.annotations!.readOnlyHint, false)

  const user = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
  const { status, request_id } = await assistant.use('call_endpoint', { method: 'post', path: '/users', body: user })
  assert.equal(status, 201)
  await assistant.use('await_idle')
  const [tree] = await assistant.use('trace', { id: request_id })
  assert.deepEqual([tree.event, tree.children[0].event], ['user.created', 'welcome.sent'])
  const job = 'users.SummarizeDay/daily-summary'
  assert.match((await assistant.use('run_job', { job })).id, /^job_/)
  const { jobs } = await assistant.use('jobs')
  assert.equal(jobs.find((each: { job: string }) => each.job === job).runs, 1)
  assert.match(await assistant.refusal('run_job', { job: 'none' }), /JOB_|plugin/)
  const { id } = await assistant.use('publish_event', { event: 'welcome.sent', payload: { user_id: 'u1' } })
  assert.match(id, /^evt_/)
  assert.match(
    await assistant.refusal('publish_event', { event: 'welcome.sent', payload: {} }),
    /does not fit its contract/,
  )
  const queue = { event: 'user.created', subscriber: 'users.SendWelcome.welcome' }
  const isPaused = async () => {
    const all: { event: string; paused: string | null }[] = await assistant.use('queues', { event: queue.event })
    assert.deepEqual([all.length, all[0]!.event], [1, queue.event])
    return all[0]!.paused !== null
  }
  assert.deepEqual(await assistant.use('manage_queue', { action: 'pause', ...queue }), { changed: 1 })
  await until(isPaused, 'the pause')
  const other = { ...user, email: 'bob@example.com' }
  await assistant.use('call_endpoint', { method: 'post', path: '/users', body: other })
  const { deliveries } = await assistant.use('queues', queue)
  assert.deepEqual([deliveries.length, deliveries[0].state, deliveries[0].payload], [1, 'waiting', undefined])
  const cancelled = await assistant.use('manage_queue', { action: 'cancel', id: deliveries[0].id })
  assert.deepEqual(cancelled, { waiting: 1, running: 0 })
  assert.deepEqual(await assistant.use('manage_queue', { action: 'resume', ...queue }), { changed: 1 })
  assert.match(await assistant.refusal('manage_queue', { action: 'run' }), /run takes the id of an event/)
  assert.match(await assistant.refusal('queues', { ...queue, id: 'x' }), /id must be the id of an event/)
  for (const [tool, given] of [
    ['find_requests', {}],
    ['why', { request: 'req_nobody' }],
  ] as const) {
    assert.match(await assistant.refusal(tool, given), /No history of requests is kept.*HISTORY_ENABLED=true/)
  }
})

test('what is no call is answered as JSON-RPC says', async (t) => {
  const app = await plugin(t, ServeAssistants, { domain: 'system' })
  const headers = { accept: 'application/json, text/event-stream' }
  const ask = (body: unknown) => app.post('/system/mcp', body as object, { headers })
  const told = await ask({ jsonrpc: '2.0', method: 'notifications/initialized' })
  assert.deepEqual([told.status, told.body], [202, undefined])
  const empty = await ask([])
  assert.deepEqual([empty.status, empty.body.error.code, empty.body.id], [400, -32600, null])
  const nameless = await ask({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: {} })
  assert.deepEqual([nameless.status, nameless.body.error.code, nameless.body.id], [200, -32602, 7])
})

test('without a token production serves no assistant', async (t) => {
  const app = await plugin(t, ServeAssistants, { domain: 'system', env: { NODE_ENV: 'production' } })
  const { status, body } = await app.post('/system/mcp', {})
  assert.deepEqual([status, body.code], [403, 'MCP_CLOSED'])
})
