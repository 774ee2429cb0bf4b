// Clients that leave: their handlers are told, and what they had not sent whole never runs. Those that stop: test/rooms/hostile/crowd.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'

const heddle = shareHeddle()

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
