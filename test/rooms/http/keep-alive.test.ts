// How long a connection is kept that waits for its next request, and whether a body is asked for that nobody wants.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../../support/command.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

/** Longer than uWebSockets.js keeps an idle connection, and than node:http waits for a client that says nothing. */
const LONG_MS = 14_000

const share = (keepAliveMs: number): (() => Heddle) =>
  shareService((owner) =>
    startHeddle(owner, {
      domains: [SERVING, SHIPPED],
      lanes: 1,
      env: { HTTP_LISTENER: 'auto', HTTP_KEEP_ALIVE_MS: String(keepAliveMs) },
    }),
  )

async function askOn(connection: RawConnection, path = '/w/echo'): Promise<number | undefined> {
  await connection.send(requestText('GET', path))
  return (await connection.response())?.status
}

describe('HTTP_KEEP_ALIVE_MS', () => {
  const short = share(500)
  const long = share(60_000)

  it('chooses the listener that can keep connections, and the status says why', async () => {
    const { listener } = jsonOf(await ask(long().port, 'GET', '/system/status'))
    assert.equal(listener.library, 'node:http')
    assert.match(listener.why, /HTTP_KEEP_ALIVE_MS/)
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

  it('keeps an idle connection, and no client that has asked for nothing or that stops in a head', async () => {
    const { port } = long()
    const idle = await RawConnection.open(port)
    assert.equal(await askOn(idle), 200)
    const silent = await RawConnection.open(port)
    const slow = await RawConnection.open(port)
    assert.equal(await askOn(slow), 200)
    await slow.send('GET /w/echo HTTP/1.1\r\nhost: loc')
    await Promise.all([silent.closed(40_000), slow.closed(40_000)])
    await new Promise((resolve) => setTimeout(resolve, LONG_MS))
    assert.equal(idle.isClosed, false)
    assert.equal(await askOn(idle), 200)
    idle.drop()
  })

  it('is refused beside HTTP_LISTENER=uws, which could not do it', async () => {
    const env = {
      ...process.env,
      HTTP_LISTENER: 'uws',
      HTTP_KEEP_ALIVE_MS: '60000',
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
    assert.match(output, /HTTP_KEEP_ALIVE_MS=60000: it closes idle connections .* HTTP_LISTENER=auto or node/)
  })

  it('Expect: 100-continue: the body is asked for when it is wanted, and not of a request that is refused by its head', async () => {
    const { port } = long()
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
