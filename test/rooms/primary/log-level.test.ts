import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { folderOf, toolsWith } from '../../support/folder.ts'
import { type Heddle, spawnHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { SseClient } from '../../support/sse-client.ts'
import { until } from '../../support/until.ts'

test('LOG_LEVEL rules what is written, not what the log stream sends; tools log under their own name', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/speak.ts': `export default class Speak {
      constructor({ http, logger, crier }) {
        http.addEndpoint('/speak', 'GET', () => { logger.info('quiet'); logger.error('loud'); crier.cry(); return {} }) } }`,
    'a/plugins/first.ts': `export default class First {
      static thread = 'primary'
      constructor({ logger, config }) { this.log = logger; this.port = config.get('HTTP_PORT') }
      async onReady() {
        const { status } = await fetch('http://127.0.0.1:' + this.port + '/nowhere')
        this.log.error('onReady was answered ' + status)
      } }`,
  })
  const crier = `export default class Crier {
    name = 'crier'
    constructor(runtime) { this.runtime = runtime }
    cry() { this.runtime.log('WARNING', 'from a tool') } }`
  const port = await freePort()
  const { child, logs } = await spawnHeddle(t, {
    domains: [domains, SYSTEM_ROUTES],
    lanes: 1,
    env: {
      HTTP_PORT: String(port),
      LOG_LEVEL: 'error',
      REPLICA_ID: 'replica-7',
      TOOLS_DIR: await toolsWith(t, { 'crier/index.ts': crier }),
    },
  })
  assert.deepEqual((await once(child, 'message'))[0], 'ready')
  const url = `http://127.0.0.1:${port}`
  const reach = { fetch: (path: string, init?: RequestInit) => fetch(url + path, init) } as Heddle
  const clients = [await SseClient.open(t, reach, '/system/logs/stream')]
  clients.push(await SseClient.open(t, reach, '/system/logs/stream'))
  const from = logs.length
  await fetch(`${url}/speak`)
  for (const client of clients) {
    await client.until(() => client.frames.length >= 3, 'three lines')
    assert.deepEqual(
      client.frames.map(({ level, message, identity }) => [level, message, identity]),
      [
        ['INFO', 'quiet', 'a.Speak'],
        ['ERROR', 'loud', 'a.Speak'],
        ['WARNING', 'from a tool', 'crier'],
      ],
    )
  }
  // A quiet line would stand before it.
  await until(() => logs.slice(from).some(({ msg }) => msg === 'loud'), 'the line is written')
  assert.deepEqual(
    logs.slice(from).map(({ msg, identity, replica }) => [msg, identity, replica]),
    [['loud', 'a.Speak', 'replica-7']],
  )
  assert.ok(
    logs.some(({ msg, identity }) => identity === 'a.First' && msg === 'onReady was answered 404'),
    'onReady runs when the listener is up',
  )
})
