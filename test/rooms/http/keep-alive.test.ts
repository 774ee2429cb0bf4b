// How long a connection is kept that waits for its next request, and whether a body is asked for that nobody wants.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { run } from '../../support/command.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const LASTING = fileURLToPath(new URL('../../fixtures/lasting', import.meta.url))
/** Longer than the 12 s that are compiled into uWebSockets.js. */
const LONG_MS = 13_000
/** When uWebSockets.js has looked at the time of a connection that waits for a request. */
const LOOKED_MS = 14_000
const DAY_MS = 86_400_000
/** Far above all bounds but that of idle connections, on a busy machine too. */
const BOUND_MAX_MS = 300_000

const share = (keepAliveMs: number | null, listener = 'auto'): (() => Heddle) =>
  shareService((owner) =>
    startHeddle(owner, {
      domains: [LASTING, SERVING, SHIPPED],
      lanes: 1,
      env: {
        HTTP_LISTENER: listener,
        ...(keepAliveMs === null ? {} : { HTTP_KEEP_ALIVE_MS: String(keepAliveMs) }),
      },
    }),
  )

async function askOn(connection: RawConnection, path = '/w/echo', method = 'GET', headers = {}) {
  await connection.send(requestText(method, path, headers))
  return (await connection.response({ isHead: method === 'HEAD' }))?.status
}

/** A body of which no more comes. */
const half = (path: string, contentLength: number) =>
  requestText('POST', path, { 'content-type': 'application/json', 'content-length': String(contentLength) })

interface Client {
  readonly what: string
  readonly play: (connection: RawConnection) => Promise<unknown>
  /** Sent again and again. */
  readonly drip?: string
}

const HEAD_BEGUN = 'GET /w/echo HTTP/1.1\r\nx: '
const late =
  (bytes: string): Client['play'] =>
  async (connection) => {
    assert.equal(await askOn(connection), 200)
    await delay(LOOKED_MS)
    await connection.send(bytes)
  }
const refused =
  (path: string, contentLength: number, status: number): Client['play'] =>
  async (connection) => {
    await connection.send(half(path, contentLength))
    assert.equal((await connection.response())?.status, status)
  }
const last =
  (method: string, path: string): Client['play'] =>
  async (connection) =>
    assert.match(String(await askOn(connection, path, method, { connection: 'close, te' })), /^20[04]$/)

/** Clients that hold a connection, and do not just wait between two requests. */
const BOUNDED: readonly Client[] = [
  { what: 'asks for nothing', play: async () => {} },
  { what: 'stops in its first head', play: (connection) => connection.send(HEAD_BEGUN) },
  { what: 'drips its first head', play: (connection) => connection.send(HEAD_BEGUN), drip: 'x' },
  {
    what: 'stops in a head right behind an answer',
    play: async (connection) => {
      assert.equal(await askOn(connection), 200)
      await connection.send(HEAD_BEGUN)
    },
  },
  { what: 'stops in a head that begins late', play: late('G') },
  { what: 'drips a head that begins late', play: late(HEAD_BEGUN), drip: 'x' },
  { what: 'stops in a body', play: (connection) => connection.send(half('/said', 100)) },
  { what: 'drips a body', play: (connection) => connection.send(half('/said', 100)), drip: ' ' },
  { what: 'stops in a body that begins late', play: late(half('/said', 100).toString()) },
  { what: 'stops in a body without a route', play: refused('/nowhere', 1000, 404) },
  { what: 'drips a body without a route', play: refused('/nowhere', 1000, 404), drip: 'x' },
  { what: 'stops in a body that is too large', play: refused('/said', 2_000_000, 413) },
  { what: 'drips a body that is too large', play: refused('/said', 2_000_000, 413), drip: 'x' },
  { what: 'is to close behind 204', play: last('GET', '/none') },
  { what: 'is to close behind an answer to HEAD', play: last('HEAD', '/hello') },
  { what: 'is to close behind a long answer', play: last('GET', '/long') },
  { what: 'is to close behind a file', play: last('GET', '/file') },
  {
    what: 'is to close behind a stream',
    play: async (connection) => {
      await connection.send(requestText('GET', '/pieces', { connection: 'close, te' }))
      await connection.arrival(BOUND_MAX_MS)
    },
  },
]

/** Resolves when the connection is closed. @throws when it is not in time */
async function outlast(port: number, { play, drip }: Client): Promise<void> {
  const connection = await RawConnection.open(port)
  const timer = drip === undefined ? undefined : setInterval(() => void connection.send(drip), 1000)
  try {
    await play(connection)
    await connection.closed(BOUND_MAX_MS)
  } finally {
    clearInterval(timer)
    connection.drop()
  }
}

/** A client that leaves its answer unread, so long that the kernel of neither side holds it, until the server has given it up. */
async function leaveUnread(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.pause().write(requestText('GET', '/long'))
  await delay(LOOKED_MS)
  socket.on('data', () => {}).resume()
  await Promise.race([once(socket, 'close'), delay(BOUND_MAX_MS, undefined, { ref: false })])
  assert.ok(socket.destroyed, 'it is kept')
}

// `auto` is uWebSockets.js, where the runtime knows its binary.
for (const listener of ['auto', 'node'])
  describe(`HTTP_KEEP_ALIVE_MS with HTTP_LISTENER=${listener}`, { concurrency: true }, () => {
    const long = share(LONG_MS, listener)
    const longest = share(DAY_MS, listener)
    const unset = share(null, listener)

    it('keeps an idle connection so long, and then closes it', async () => {
      const idle = await RawConnection.open(long().port)
      const startedMs = performance.now()
      assert.equal(await askOn(idle), 200)
      await idle.closed(BOUND_MAX_MS)
      assert.ok(performance.now() - startedMs >= LONG_MS, `${performance.now() - startedMs}`)
    })

    it('begins anew with each request', async () => {
      const idle = await RawConnection.open(long().port)
      assert.equal(await askOn(idle), 200)
      await delay(LONG_MS / 2)
      const startedMs = performance.now()
      assert.equal(await askOn(idle), 200)
      await idle.closed(BOUND_MAX_MS)
      assert.ok(performance.now() - startedMs >= LONG_MS, `${performance.now() - startedMs}`)
    })

    it('is beyond the 60 s of balancers where it is not set', async () => {
      const idle = await RawConnection.open(unset().port)
      assert.equal(await askOn(idle), 200)
      await delay(LOOKED_MS)
      assert.equal(await askOn(idle), 200)
      idle.drop()
    })

    it('keeps nobody who is no idle client', async () => {
      const { port } = longest()
      const idle = await RawConnection.open(port)
      assert.equal(await askOn(idle), 200)
      const clients = BOUNDED.map(async (client) => {
        await outlast(port, client).catch((error) => assert.fail(`who ${client.what}: ${error}`))
      })
      const { library } = jsonOf(await ask(port, 'GET', '/system/status')).listener
      if (library === 'uWebSockets.js') clients.push(leaveUnread(port))
      await Promise.all(clients)
      assert.equal(await askOn(idle), 200)
      idle.drop()
    })
  })

describe('HTTP_KEEP_ALIVE_MS', () => {
  const short = share(500)

  it('below 8000 chooses node:http, and the status says why', async () => {
    const { listener } = jsonOf(await ask(short().port, 'GET', '/system/status'))
    assert.equal(listener.library, 'node:http')
    assert.match(listener.why, /at least, whatever HTTP_KEEP_ALIVE_MS says|has no binary|glibc/)
  })

  it('closes an idle connection when the time is over, and none that is in use', async () => {
    const { port } = short()
    const idle = await RawConnection.open(port)
    assert.equal(await askOn(idle), 200)
    const busy = await RawConnection.open(port)
    await busy.send(requestText('GET', '/w/hang/kept'))
    await idle.closed(20_000)
    assert.equal(busy.isClosed, false)
    busy.drop()
  })

  it('below 8000 is refused beside HTTP_LISTENER=uws, which cannot do it', async () => {
    const env = {
      ...process.env,
      HTTP_LISTENER: 'uws',
      HTTP_KEEP_ALIVE_MS: '7999',
      HTTP_PORT: '0',
      AUTH_SECRET_KEY: 'k'.repeat(32),
    }
    const { code, output } = await run(
      process.execPath,
      ['--require', './src/preload.cjs', 'src/main.ts'],
      process.cwd(),
      env,
    )
    assert.notEqual(code, 0)
    assert.match(
      output,
      /HTTP_KEEP_ALIVE_MS=7999: it keeps idle connections for 8000 ms at least.* HTTP_LISTENER=auto or node/,
    )
  })

  it('Expect: 100-continue: the body is asked for when it is wanted, and not of a request that is refused by its head', async () => {
    const { port } = short()
    const expect = { expect: '100-continue' }
    for (const [method, path, length, status] of [
      ['POST', '/w/nowhere', 4, 404],
      ['DELETE', '/w/say', 4, 405],
      ['POST', '/w/say', 5_000_000, 413],
      ['POST', '/w/private', 4, 401],
    ] as const) {
      const connection = await RawConnection.open(port)
      await connection.send(requestText(method, path, { ...expect, 'content-length': String(length) }))
      // The token is looked at behind the body.
      const first = await connection.response({ isInterim: status === 401 })
      assert.equal(first?.status, status === 401 ? 100 : status, path)
      if (status !== 401) await connection.closed(10_000)
      connection.drop()
    }
    const taken = await RawConnection.open(port)
    await taken.send(
      requestText('POST', '/w/say', { ...expect, 'content-length': '2', 'content-type': 'application/json' }),
    )
    assert.equal((await taken.response({ isInterim: true }))?.status, 100)
    await taken.send('{}')
    assert.equal((await taken.response())?.status, 200)
    assert.equal(await askOn(taken), 200)
    taken.drop()
  })
})
