import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { type Answer, HOST, type Proxied, type Replica, startProxied } from './proxied.ts'
import { startProxiedLoad } from './proxied-load.ts'

/** Loopback has many addresses on Linux alone: each of them is another client to the proxy. */
const MANY_ADDRESSES = { skip: process.platform === 'linux' ? false : 'needs more addresses than 127.0.0.1' }
const OUTSIDE = '127.0.0.2'
/** So many answers are a steady load. */
const STEADY_POSTS = 20

test('the shipped nginx configuration, in front of two replicas', MANY_ADDRESSES, async (t) => {
  const proxied = await startProxied(t)
  if (proxied === null) return
  const { send, replicas, httpPort, httpsPort, certificate } = proxied

  await t.test('plain HTTP is sent to HTTPS, with method, path and query', async () => {
    const response = await fetch(`http://127.0.0.1:${httpPort}/users?page=2`, { method: 'POST', redirect: 'manual' })
    assert.equal(response.status, 308)
    assert.equal(response.headers.get('location'), 'https://127.0.0.1/users?page=2')
  })

  await t.test('TLS ends at the proxy, and both replicas are asked', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => send('/replica?waitMs=20')))
    assert.deepEqual([...new Set(answers.map(replicaOf))].sort(), ['worker-1', 'worker-2'])
    assert.match(String(answers[0]!.headers['strict-transport-security']), /max-age=/)
    assert.doesNotMatch(String(answers[0]!.headers.server), /\d/)
  })

  await t.test('a client of HTTP/2 is served', async () => {
    const session = connectHttp2(`https://${HOST}:${httpsPort}`, {
      ca: certificate,
      host: '127.0.0.1',
      lookup: loopback,
    })
    try {
      const stream = session.request({ ':path': '/replica' })
      const [headers] = await Promise.all([
        new Promise<Record<string, unknown>>((resolve, reject) => stream.on('response', resolve).on('error', reject)),
        stream.resume().end(),
      ])
      assert.equal(headers[':status'], 200)
    } finally {
      session.close()
    }
  })

  await t.test('x-request-id passes both ways, and a replica makes one where there is none', async () => {
    const given = await send('/replica', { headers: { 'x-request-id': 'from-the-client' } })
    assert.equal(given.headers['x-request-id'], 'from-the-client')
    assert.equal(JSON.parse(given.text).data.requestId, 'from-the-client')
    assert.match(String((await send('/replica')).headers['x-request-id']), /^req_/)
    const logged = await until(async () => {
      const lines = (await readFile(`${proxied.nginx.directory}/access.log`, 'utf8')).trim().split('\n')
      return lines.map((line) => JSON.parse(line)).find(({ request_id }) => request_id === 'from-the-client')
    }, 'the line of the access log')
    assert.equal(logged.status, 200)
    assert.match(logged.replica, /^127\.0\.0\.1:\d+$/)
  })

  await t.test('what a client says about addresses is replaced', async () => {
    const forged = {
      'x-forwarded-for': '10.1.2.3',
      'x-real-ip': '10.1.2.3',
      forwarded: 'for=10.1.2.3',
      'x-forwarded-proto': 'ftp',
    }
    const { headers } = JSON.parse((await send('/replica', { headers: forged, from: OUTSIDE })).text).data
    assert.equal(headers['x-forwarded-for'], OUTSIDE)
    assert.equal(headers['x-real-ip'], OUTSIDE)
    assert.equal(headers['x-forwarded-proto'], 'https')
    assert.equal(headers.forwarded, undefined)
    assert.equal(headers.host, HOST)
  })

  await t.test('/system is for the addresses of the list alone, however it is written', async () => {
    assert.equal((await send('/system/status')).status, 200)
    const refused = await send('/system/status', { from: OUTSIDE })
    assert.equal(refused.status, 403)
    assert.deepEqual(JSON.parse(refused.text), { success: false, error: 'Forbidden' })
    for (const path of SPELLINGS) {
      const { status, text } = await send(path, { from: OUTSIDE })
      assert.ok([400, 403, 404].includes(status), `${path}: ${status} ${text.slice(0, 100)}`)
      assert.doesNotMatch(text, /"tools"/, path)
    }
  })

  await t.test('a balancer in front may ask for the health, the world may not', async () => {
    assert.equal((await send('/system/health/ready')).status, 200)
    assert.equal((await send('/system/health/ready', { from: OUTSIDE })).status, 403)
  })

  await t.test('a flood from one address gets 429, and nobody else notices', async () => {
    const flooding = flood(proxied, '127.0.0.3')
    const calm = await send('/replica', { from: '127.0.0.4' })
    assert.equal(calm.status, 200)
    const statuses = await flooding
    const refused = statuses.filter(({ status }) => status === 429)
    assert.ok(refused.length > 0 && statuses.length - refused.length >= 100, `${refused.length} of ${statuses.length}`)
    assert.deepEqual([...new Set(statuses.map(({ status }) => status))].sort(), [200, 429])
    assert.deepEqual(JSON.parse(refused[0]!.text), { success: false, error: 'Too many requests' })
    assert.equal(refused[0]!.headers['retry-after'], '1')
  })
  await t.test('the limits of a replica answer in its own words', async () => {
    const body = JSON.stringify({ text: 'x'.repeat(1_100_000) })
    const large = await send('/orders/large', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    assert.equal(large.status, 413)
    assert.equal(JSON.parse(large.text).success, false)
    const long = await send('/replica', { headers: { 'x-long': 'x'.repeat(12_000) } })
    assert.equal(long.status, 200)
  })

  await t.test('a stream arrives frame by frame', async () => {
    assert.deepEqual(await framesOf(proxied, '/ticks', 3), ['data', 'data', 'data'])
  })

  await t.test(
    'a replica that is killed: no GET fails, no POST is sent twice, and it is asked again when it is back',
    async (step) => {
      await writeFile(proxied.ordersFile, '')
      const load = startProxiedLoad(proxied, 10)
      step.after(() => load.stop())
      const steady = (posts: number) => until(() => load.posts.answered > posts, 'a steady load', 60_000)
      await steady(STEADY_POSTS)

      const waiting = new Map<string, Promise<Answer>>()
      const waitingAt = async () => (await ordersOf(proxied)).filter(({ id }) => waiting.has(id))
      while (new Set((await waitingAt()).map(({ replica }) => replica)).size < 2) {
        const id = `slow-${waiting.size}`
        waiting.set(id, send(`/orders/${id}?waitMs=5000`, { method: 'POST' }))
        await until(async () => (await waitingAt()).length === waiting.size, 'the order is begun')
      }
      await replicas[0].heddle.stop('SIGKILL')
      for (const { id, replica } of await waitingAt()) {
        assert.equal((await waiting.get(id)!).status, replica === replicas[0].name ? 502 : 200, `${id} at ${replica}`)
      }
      await steady(load.posts.answered + STEADY_POSTS)

      await replicas[0].start()
      await until(async () => isFrom(await send('/replica'), replicas[0].name), 'requests for the new process', 30_000)
      await load.stop()

      assert.deepEqual(load.gets.failures, [])
      const orders = (await ordersOf(proxied)).map(({ id }) => id)
      assert.equal(new Set(orders).size, orders.length, 'a POST was sent twice')
      assert.deepEqual(
        load.orders.filter((id) => !orders.includes(id)),
        [],
      )
      // At most what was under way in it.
      assert.ok(
        load.posts.failures.length <= 10 && load.posts.failures.every((line) => line.endsWith(': 502')),
        load.posts.failures.join('\n'),
      )
      step.diagnostic(
        `${load.gets.answered} GETs, ${load.posts.answered} POSTs, ${load.posts.failures.length} POSTs with 502`,
      )
    },
  )

  await t.test('replicas that are replaced one after the other under load lose no request', async (step) => {
    await writeFile(proxied.ordersFile, '')
    const load = startProxiedLoad(proxied, 10)
    step.after(() => load.stop())
    const steady = async () => {
      const before = load.posts.answered
      await until(() => load.posts.answered > before + STEADY_POSTS, 'a steady load', 60_000)
    }
    await steady()
    // At once, as whoever follows the page does.
    for (const replica of proxied.replicas) await replaced(replica)
    await steady()
    await load.stop()
    assert.deepEqual([...load.gets.failures, ...load.posts.failures], [])
    const orders = (await ordersOf(proxied)).map(({ id }) => id)
    assert.deepEqual([...orders].sort(), [...load.orders].sort())
    step.diagnostic(`${load.gets.answered} GETs, ${load.posts.answered} POSTs`)
  })

  await t.test('without any replica the answer has the envelope too', async () => {
    await Promise.all(proxied.replicas.map(({ heddle }) => heddle.stop('SIGKILL')))
    const { status, text } = await send('/replica')
    assert.equal(status, 502)
    assert.deepEqual(JSON.parse(text), { success: false, error: 'No replica answered' })
  })
})

/** As fast as it goes, until the first request is refused. */
async function flood({ send, certificate }: Proxied, from: string): Promise<Answer[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 20, ca: certificate, servername: HOST })
  const answers: Answer[] = []
  while (!answers.some(({ status }) => status === 429) && answers.length < 20_000) {
    answers.push(...(await Promise.all(Array.from({ length: 20 }, () => send('/replica', { from, agent })))))
  }
  agent.destroy()
  return answers
}

/** As the page says: nobody waits for the proxy. */
async function replaced(replica: Replica): Promise<void> {
  assert.equal(await replica.heddle.stop('SIGTERM'), 0)
  await replica.start()
  await until(async () => (await replica.heddle.fetch('/system/health/ready')).ok, `${replica.name} is ready`, 30_000)
}

/** Ways to write `/system/status` that a proxy and a server may read differently. */
const SPELLINGS = (
  '/%73ystem/status /system%2fstatus /system%2Fstatus //system/status /system//status /./system/status ' +
  '/users/../system/status /users/%2e%2e/system/status /users/..%2fsystem/status /%2fsystem/status ' +
  '/%2573ystem/status /SYSTEM/status /system/status/ /system;x=1/status /system/status;x=1 /system/%73tatus ' +
  '/\\system/status /x/..\\system/status /system/health/../status /system/health/%2e%2e/status ' +
  '/system/health/..%2fstatus /?/system/status /system'
).split(' ')

/** Whoever asks again and again is refused now and then. */
const isFrom = (answer: Answer, replica: string): boolean => answer.status !== 429 && replicaOf(answer) === replica

function replicaOf({ status, text }: Answer): string {
  assert.equal(status, 200, text)
  return JSON.parse(text).data.replica
}

async function ordersOf({ ordersFile }: Proxied): Promise<{ id: string; replica: string }[]> {
  const lines = (await readFile(ordersFile, 'utf8')).split('\n').filter(Boolean)
  return lines.map((line) => {
    const [id, replica] = line.split(' ') as [string, string]
    return { id, replica }
  })
}

/** The kinds of the first frames of a stream that does not end; only what has arrived can be counted. */
function framesOf({ httpsPort, certificate }: Proxied, path: string, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const headers = { host: HOST, accept: 'text/event-stream' }
    const sent = request({
      host: '127.0.0.1',
      port: httpsPort,
      path,
      ca: certificate,
      servername: HOST,
      agent: false,
      headers,
    })
    sent.setTimeout(20_000, () => sent.destroy(new Error('no frame')))
    sent.on('error', reject).on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        const kinds = [...text.matchAll(/^(\w+): .*\n\n/gm)].map(([, kind]) => kind!)
        if (kinds.length < count) return
        resolve(kinds.slice(0, count))
        sent.destroy()
      })
    })
    sent.end()
  })
}

function loopback(
  _host: string,
  _options: unknown,
  done: (error: null, addresses: { address: string; family: number }[]) => void,
) {
  done(null, [{ address: '127.0.0.1', family: 4 }])
}
