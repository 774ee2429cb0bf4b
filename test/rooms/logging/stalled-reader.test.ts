import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, type TestContext, test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { RawConnection } from '../../support/raw-client.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** A service whose lane writes a megabyte of lines at each `/shout`. */
async function start(t: TestContext, env: Record<string, string> = {}): Promise<Heddle> {
  const domains = await folderOf(t, {
    'loud/plugins/shout.ts': `export default class Shout {
      constructor({ http, logger }) {
        let errors = 0
        http.addEndpoint('/ok', 'GET', () => ({ ok: true }))
        http.addEndpoint('/shout', 'GET', () => {
          for (let n = 0; n < 1000; n++) logger.info('n' + n, { text: 'x'.repeat(1000) })
          logger.error('error ' + errors++)
          return {}
        })
      } }`,
  })
  return startHeddle(t, { domains: [domains, SYSTEM_ROUTES], lanes: 1, env: { LOG_PLUGIN_RATE: '100000', ...env } })
}

/** Sends requests that have two lengths. */
async function sendMalformed({ port }: Heddle, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const connection = await RawConnection.open(port)
    await connection.send('POST /ok HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na')
    await connection.closed(2000)
  }
}

async function assertServes(heddle: Heddle): Promise<void> {
  const startedMs = performance.now()
  const { status } = await heddle.fetch('/ok', { signal: AbortSignal.timeout(3000) })
  assert.equal(status, 200)
  assert.ok(performance.now() - startedMs < 2000, `answered after ${performance.now() - startedMs} ms`)
}

describe('a log reader that stalls', () => {
  test('holds nothing up; the least important records are dropped first, and it is told how many', async (t) => {
    const heddle = await start(t, { LOG_BUFFER_BYTES: '200000' })
    heddle.process.stdout!.pause()
    await sendMalformed(heddle, 800)
    for (let n = 0; n < 5; n++) await heddle.fetch('/shout', { signal: AbortSignal.timeout(3000) })
    await assertServes(heddle)
    heddle.process.stdout!.resume()
    const told = ({ msg }: { msg: string }): boolean => msg.includes('were dropped')
    await until(() => heddle.logs.some(told), 'the reader is told')
    const errors = heddle.logs.filter(({ msg }) => msg.startsWith('error '))
    assert.deepEqual(
      errors.map(({ msg }) => msg),
      ['error 0', 'error 1', 'error 2', 'error 3', 'error 4'],
    )
    const line = heddle.logs.find(told)!
    const { dropped } = line as unknown as { dropped: Record<string, number> }
    const infos = heddle.logs.filter(({ text }) => typeof text === 'string').length
    assert.deepEqual(dropped, { INFO: 5000 - infos })
    assert.equal(await heddle.stop(), 0)
  })

  test('does not hold up the end of the process', async (t) => {
    const heddle = await start(t)
    heddle.process.stdout!.pause()
    for (let n = 0; n < 3; n++) await heddle.fetch('/shout', { signal: AbortSignal.timeout(3000) })
    const ended = once(heddle.process, 'exit')
    heddle.process.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })
})
