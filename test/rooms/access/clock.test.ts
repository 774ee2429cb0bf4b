import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { ask, RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'

const MOVED_CLOCK = fileURLToPath(new URL('../../support/moved-clock.cjs', import.meta.url))

test('a clock that is set an hour ahead ends no request, no body and no lane before its time', async (t) => {
  const env = { NODE_OPTIONS: `--require=${MOVED_CLOCK}` }
  const heddle = await startHeddle(t, { domains: [SERVING], lanes: 1, env })
  const { port } = heddle
  const waiting = await Promise.all(
    [
      requestText('GET', '/w/hang/clock'),
      requestText('GET', '/p/hang/clock'),
      // A body that has begun.
      requestText('POST', '/w/echo', { 'content-length': '10' }, 'half'),
    ].map(async (bytes) => {
      const connection = await RawConnection.open(port)
      t.after(() => connection.drop())
      await connection.send(bytes)
      return connection
    }),
  )
  const begun = async (): Promise<number> => {
    const { body } = await ask(port, 'GET', '/w/state/clock:started')
    return JSON.parse(body.toString()).data
  }
  await until(async () => (await begun()) === 2, 'both handlers have begun')

  heddle.process.kill('SIGUSR2')
  // Limits are checked all the while: these run out in their own time.
  for (let round = 0; round < 2; round++) {
    for (const prefix of ['/w', '/p'])
      assert.equal((await ask(port, 'GET', `${prefix}/overtime/clock-${round}`)).status, 504)
  }
  for (const connection of waiting) assert.deepEqual([connection.isClosed, connection.rest.toString()], [false, ''])
  assert.deepEqual(
    heddle.logs.filter(({ level }) => level >= 50),
    [],
  )
})
