import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import type { RawWebSocket } from '../../support/web-socket.ts'
import { shareTalk, talk } from './support.ts'

const heddle = shareTalk({ lanes: 2, env: { HTTP_MAX_STREAMS_PER_ADDRESS: '2000' } })

test('a client that leaves too much unread is cut off, and the plugin is told', async () => {
  // They hear how others leave: in each lane there is one.
  const witnesses: RawWebSocket[] = []
  const served = async () =>
    ((await heddle().json('/system/lanes')).body as { sockets_open: number }[]).filter((lane) => lane.sockets_open > 0)
  while ((await served()).length < 2) witnesses.push(await talk(heddle(), '/talk/witness'))
  const client = await talk(heddle())
  client.tcp.pause()
  client.send('flood 5000')
  const told = '{"left":1013,"reason":"left too much unread"'
  const isTold = (): boolean => witnesses.some(({ texts }) => texts.some((text) => text.startsWith(told)))
  await until(isTold, 'it is cut off', 20_000)
  client.tcp.resume()
  await client.ended()
  assert.ok(client.texts.length < 4000, `${client.texts.length} messages were kept for it`)
})

test('a plugin that waits for room loses nothing to a client that reads late', async () => {
  const client = await talk(heddle())
  client.tcp.pause()
  client.send('pour 3000')
  const other = await talk(heddle(), '/talk/b')
  other.send('hello')
  assert.equal(await other.text(2), 'hello')
  client.tcp.resume()
  await until(() => client.texts.length === 3002, 'all have come', 20_000)
  const waits = Number(/^poured (\d+)$/.exec(client.texts.at(-1)!)?.[1])
  assert.ok(waits > 0, 'it has waited')
  await client.close()
  await other.close()
})

test('a message larger than all bounds reaches a client that has read the rest', async () => {
  const client = await talk(heddle())
  for (const count of [2, 3]) {
    client.send('x'.repeat(1_000_000))
    assert.equal((await client.text(count)).length, 1_000_000)
  }
  await client.close()
})

test('a client that sends more than is handled is closed with 1013, and the others go on', async () => {
  const client = await talk(heddle())
  client.send('wait 60000')
  const piece = 'x'.repeat(200_000)
  for (let n = 0; n < 30; n++) client.send(piece)
  await until(() => client.closed !== null, 'the close frame')
  assert.deepEqual(client.closed, [1013, 'too many messages wait'])
  assert.equal((await heddle().fetch('/system/health/live')).status, 200)
})

test('a thousand clients are served, counted and let go', async () => {
  const before = await openNow()
  const clients: RawWebSocket[] = []
  for (let n = 0; n < 20; n++) clients.push(...(await Promise.all(Array.from({ length: 50 }, () => talk(heddle())))))
  assert.equal((await openNow()) - before, 1000)
  const text = await (await heddle().fetch('/system/metrics/prometheus')).text()
  const gauges = [...text.matchAll(/^heddle_lane_sockets_open\{lane="\d"\} (\d+)$/gm)].map(([, count]) => Number(count))
  assert.equal(gauges.length, 2)
  assert.ok(Math.min(...gauges) > 100, `the lanes have ${gauges}`)
  // Whoever shouts is heard in all lanes.
  clients[0]!.send('shout everybody')
  await until(() => clients.every(({ texts }) => texts.includes('{"shouted":"everybody"}')), 'all have heard it')
  for (const { tcp } of clients) tcp.destroy()
  await until(async () => (await openNow()) === before, 'all are gone')
})

async function openNow(): Promise<number> {
  const { body } = await heddle().json('/system/lanes')
  return (body as { sockets_open: number }[]).reduce((sum, { sockets_open }) => sum + sockets_open, 0)
}
