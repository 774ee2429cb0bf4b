import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, assertFailure, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'

const heddle = shareHeddle()
/** The library's 12 s for a head or silence, and what a busy machine adds. */
const SLOW_MAX_MS = 18_000

async function stateOf(key: string): Promise<unknown> {
  return jsonOf(await ask(heddle.port, 'GET', `/w/state/${key}`)).data
}

describe('a client that leaves', { concurrency: true }, () => {
  for (const prefix of ['/w', '/p']) {
    for (const way of ['drop', 'reset', 'halfClose'] as const) {
      it(`aborts the handler's signal: ${way}, ${prefix}`, async () => {
        const key = `left-${way}-${prefix.slice(1)}`
        const connection = await RawConnection.open(heddle.port)
        await connection.send(requestText('GET', `${prefix}/hang/${key}`))
        await until(async () => (await stateOf(`${key}:started`)) === 1, 'the handler runs')
        connection[way]()
        await until(async () => (await stateOf(`${key}:aborted`)) === 1, 'the signal is aborted')
        await connection.closed(1_000)
        assert.equal(connection.rest.length, 0)
      })
    }
  }

  it('leaves nothing behind when it goes inside the head', async () => {
    const whole = requestText('POST', '/w/count/cut-head', {}, 'body')
    const headBytes = whole.indexOf('\r\n\r\n')
    for (let at = 1; at < headBytes; at += 7) {
      const connection = await RawConnection.open(heddle.port)
      await connection.send(whole.subarray(0, at))
      connection.halfClose()
      await connection.closed(1_000)
      assert.equal(connection.rest.length, 0)
    }
    assert.equal(await stateOf('cut-head:runs'), null)
  })

  it('runs no handler when it goes inside the body', async () => {
    for (const prefix of ['/w', '/p']) {
      const key = `cut-body-${prefix.slice(1)}`
      const whole = requestText('POST', `${prefix}/count/${key}`, {}, 'x'.repeat(50_000))
      const bodyAt = whole.indexOf('\r\n\r\n') + 4
      for (const way of ['halfClose', 'drop', 'reset'] as const) {
        for (const at of [bodyAt, bodyAt + 1, bodyAt + 25_000, whole.length - 1]) {
          const connection = await RawConnection.open(heddle.port)
          await connection.send(whole.subarray(0, at))
          connection[way]()
          await connection.closed(1_000)
          assert.equal(connection.rest.length, 0, `${way} at ${at}`)
        }
      }
      const chunked = requestText('POST', `${prefix}/count/${key}`, { 'transfer-encoding': 'chunked' }, '3\r\nabc\r\n')
      const connection = await RawConnection.open(heddle.port)
      await connection.send(chunked)
      connection.halfClose()
      await connection.closed(1_000)
      assert.equal(await stateOf(`${key}:runs`), null)
    }
  })
})

describe('a client that stops', { concurrency: true }, () => {
  it('is cut off when it says nothing at all, in the head', async () => {
    const silent = await Promise.all(
      ['', 'GET /w/echo HT'].map(async (start) => {
        const connection = await RawConnection.open(heddle.port)
        if (start !== '') await connection.send(start)
        return connection
      }),
    )
    for (const connection of silent) await connection.closed(SLOW_MAX_MS)
  })

  for (const framing of ['content-length: 5', 'transfer-encoding: chunked']) {
    it(`is answered 408 when no byte of its body comes: ${framing}`, async () => {
      const connection = await RawConnection.open(heddle.port)
      await connection.send(`POST /w/count/silent HTTP/1.1\r\nhost: test\r\n${framing}\r\n\r\n`)
      assertFailure(await connection.response(), 408, 'The request body did not arrive in time')
      assert.equal(await stateOf('silent:runs'), null)
    })
  }
})
