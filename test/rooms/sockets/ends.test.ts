import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { openWebSocket, type RawWebSocket } from '../../support/web-socket.ts'
import { shareTalk, talk } from './support.ts'

const ENV = { LANE_STALL_MS: '500', HTTP_MAX_STREAMS_PER_ADDRESS: '1000' }
/** A process for each death and one for the rest: a plugin that has ended a lane has one of its own for a minute, and the crowd needs two. */
const [exited, stalled, whole] = ['exited', 'stalled', 'whole'].map((API_TITLE) =>
  shareTalk({ lanes: 2, env: { ...ENV, API_TITLE } }),
)
let heddle = exited!

/** Clients in both lanes. */
async function crowd(): Promise<RawWebSocket[]> {
  await until(
    async () => (await heddle().json('/system/health/ready')).body.data.reasons.length === 0,
    'both lanes are up',
  )
  const clients: RawWebSocket[] = []
  // On a busy machine a lane may be too late for any: it is left out then.
  while (clients.length < 12 || (await lanes()).some(({ sockets_open }) => sockets_open === 0)) {
    clients.push(await talk(heddle()))
  }
  return clients
}

interface Lane {
  role: string
  sockets_open: number
  deaths: { reason: string; guilty: { plugin: string; handler: string } | null }[]
}

const lanes = async (): Promise<Lane[]> => (await heddle().json('/system/lanes')).body

for (const [command, reason, process] of [
  ['exit', 'exited', exited!],
  ['stall', 'stalled', stalled!],
] as const) {
  test(`the sockets of a lane that ${reason === 'exited' ? 'dies' : 'stands still'} are closed with 1012, those of the others go on`, async () => {
    heddle = process
    const clients = await crowd()
    clients[0]!.send(command)
    await until(() => clients[0]!.closed !== null, 'the close frame', 20_000)
    assert.deepEqual(clients[0]!.closed, [1012, 'service restart'])
    for (const client of clients) client.send('still here')
    for (const client of clients) {
      await until(() => client.texts.includes('still here') || client.closed !== null, 'an echo or the end')
    }
    const left = clients.filter(({ closed }) => closed === null)
    assert.ok(left.length > 0, 'the other lane has some')
    const [death] = (await lanes()).flatMap(({ deaths }) => deaths).filter((each) => each.reason === reason)
    assert.deepEqual([death?.guilty?.plugin, death?.guilty?.handler], ['talk.TalkToClients', 'GET /talk/:room'])
    for (const client of left) await client.close()
    // And its own lane takes new ones, once it is up.
    await until(async () => (await lanes()).some(({ role }) => role === 'probation'), 'its own lane', 20_000)
    const fresh = await talk(heddle())
    await fresh.close()
  })
}

test('a reload finishes what is being handled, closes with 1012, and new sockets find the new lanes', async () => {
  heddle = whole!
  const clients = await crowd()
  const busy = clients[0]!
  busy.send('wait 300')
  await heddle().json('/system/lanes')
  heddle().process.kill('SIGHUP')
  await until(() => clients.every(({ closed }) => closed !== null), 'all are closed', 30_000)
  for (const { closed } of clients) assert.deepEqual(closed, [1012, 'service restart'])
  assert.equal(busy.texts.at(-1), 'wait 300')
  const fresh = await talk(heddle())
  fresh.send('hello')
  assert.equal(await fresh.text(2), 'hello')
  await fresh.close()
  await until(() => heddle().logs.some(({ msg }) => msg.startsWith('Reloaded')), 'the reload is over', 30_000)
})

test('SIGTERM finishes what is being handled, closes with 1001, and the process ends with 0', async () => {
  const clients = await crowd()
  const primary = await openWebSocket(heddle().port, '/primary')
  await primary.text(1)
  const busy = clients[0]!
  busy.send('wait 300')
  await heddle().json('/system/lanes')
  const code = heddle().stop()
  await Promise.all(clients.map((client) => until(() => client.closed, 'a close frame', 20_000)))
  for (const { closed } of [...clients, primary]) assert.deepEqual(closed, [1001, 'the service is shutting down'])
  assert.equal(busy.texts.at(-1), 'wait 300')
  assert.equal(await code, 0)
  const errors = heddle().logs.filter(({ level, msg }) => level >= 50 && !msg.startsWith('Lane '))
  assert.deepEqual(errors, [])
})
