import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startHeddle } from '../support/heddle.ts'
import { shareService } from '../support/shared-service.ts'
import { fixture } from '../support/started-service.ts'
import { until } from '../support/until.ts'
import { openWebSocket } from '../support/web-socket.ts'

describe('when a token expires', () => {
  const service = shareService((owner) => startHeddle(owner, { lanes: 1, domains: [fixture('tokens')] }))
  const headersFor = async (seconds: number) => {
    const { body } = await service().json(`/issue/${seconds}`, { method: 'POST' })
    return { authorization: `Bearer ${body.token as string}` }
  }
  const expOf = async (headers: Record<string, string>): Promise<number> =>
    (await service().json('/whoami', { headers })).body.claims.exp * 1000

  test('its WebSocket is closed with 1008, not before, and others stay open', async (t) => {
    const [short, long] = [await headersFor(2), await headersFor(3600)]
    const expMs = await expOf(short)
    const open = (path: string, headers: Record<string, string>) => openWebSocket(service().port, path, headers)
    const [client, patient, endless] = [
      await open('/line', short),
      await open('/line', long),
      await open('/endless', long),
    ]
    for (const each of [client, patient, endless]) {
      t.after(() => each.tcp.destroy())
      assert.equal(await each.text(1), 'ada')
    }
    await until(() => client.closed !== null, 'closed')
    assert.ok(Date.now() >= expMs, 'not before its time')
    assert.deepEqual(client.closed, [1008, 'the token has expired'])
    patient.send('still there')
    assert.equal(await patient.text(2), 'ada')
    assert.equal(endless.closed, null)
  })

  test('its stream ends', async () => {
    const headers = await headersFor(2)
    const expMs = await expOf(headers)
    const response = await service().fetch('/news', { headers })
    assert.equal(response.status, 200)
    assert.equal(await response.text(), ': open\n\ndata: {"hello":true}\n\n')
    assert.ok(Date.now() >= expMs, 'not before its time')
    assert.equal((await service().fetch('/news', { headers })).status, 401)
  })
})
