import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shareService } from '../../support/shared-service.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { openWebSocket } from '../../support/web-socket.ts'

describe('when a token expires or is revoked', { concurrency: true }, () => {
  const service = shareService({ lanes: 2, domains: [fixture('tokens')] })
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

  test('what a revoked token holds open is closed in every thread, and nothing else', async (t) => {
    const [lost, kept] = [await headersFor(3600), await headersFor(3600)]
    const open = async (headers: Record<string, string>) => {
      const client = await openWebSocket(service().port, '/line', headers)
      t.after(() => client.tcp.destroy())
      assert.equal(await client.text(1), 'ada')
      return client
    }
    // A socket goes to the lane with the fewest: both lanes have some of each.
    const losing = await Promise.all(Array.from({ length: 4 }, () => open(lost)))
    const keeping = await Promise.all(Array.from({ length: 4 }, () => open(kept)))
    const [ending, staying] = [
      await service().fetch('/news', { headers: lost }),
      await service().fetch('/news', { headers: kept }),
    ]
    await service().json('/revoke', { method: 'POST', headers: lost })
    for (const client of losing) await until(() => client.closed !== null, 'closed')
    for (const client of losing) assert.deepEqual(client.closed, [1008, 'the token was revoked'])
    assert.equal(await ending.text(), ': open\n\ndata: {"hello":true}\n\n')
    for (const client of keeping) {
      client.send('still there')
      assert.equal(await client.text(2), 'ada')
    }
    assert.equal(await isOpen(staying), true)
  })
})

/** Whether a stream that has nothing to say is still there, some time after others were ended. */
async function isOpen({ body }: Response): Promise<boolean> {
  const reader = body!.getReader()
  const ended = (async () => {
    while (!(await reader.read()).done);
    return false
  })()
  const stays = new Promise<boolean>((resolve) => setTimeout(resolve, 200, true))
  const answer = await Promise.race([ended, stays])
  void reader.cancel()
  return answer
}
