import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { coreWaitMs } from '../../support/core-wait.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { RawConnection } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const RATE = 500
const RECORD_BYTES = 4096

const PLUGINS = {
  'loud/plugins/loop.ts': `export default class Loop {
    constructor({ http, logger }) {
      http.addEndpoint('/loop', 'GET', () => {
        for (let n = 0; n < 1_000_000; n++) logger.info('round ' + n)
        logger.error('the end')
        return {}
      })
    } }`,
  'loud/plugins/large.ts': `export default class Large {
    constructor({ http, logger }) {
      http.addEndpoint('/large', 'GET', () => {
        logger.info('large', { text: 'x'.repeat(3e6), list: new Array(1e5).fill(7), small: 1 })
        logger.info('m'.repeat(3e6))
        logger.info(new Array(1e5).fill(88888))
        logger.info('\\u0001'.repeat(2e6), { list: new Array(1e5).fill('\\ud800') })
        return {}
      })
      http.addEndpoint('/throw', 'GET', () => { throw new Error('e'.repeat(3e6)) })
    } }`,
  'loud/plugins/large-primary.ts': `export default class LargePrimary {
    static thread = 'primary'
    constructor({ http, logger }) {
      http.addEndpoint('/large-primary', 'GET', () => { logger.info('p'.repeat(3e6)); return {} })
    } }`,
}

/** Sends requests that have two lengths. */
async function sendMalformed({ port }: Heddle, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const connection = await RawConnection.open(port)
    await connection.send('POST /x HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na')
    await connection.closed(2000)
  }
}

describe('the limits of the log', () => {
  const service = shareService(async (owner) =>
    startHeddle(owner, {
      domains: [await folderOf(owner, PLUGINS), SYSTEM_ROUTES],
      lanes: 1,
      env: { LOG_PLUGIN_RATE: String(RATE), LOG_RECORD_BYTES: String(RECORD_BYTES) },
    }),
  )

  it('a million log lines cost their own lane; what is left out is told, and an error has its place', async () => {
    const { logs, fetch, process: primary } = service()
    // Other processes may take the cores from it, and from this one.
    const waitedMs = () => coreWaitMs(primary.pid!) + coreWaitMs(process.pid)
    let slowestMs = 0
    let isOver = false
    const looping = fetch('/loop').finally(() => {
      isOver = true
    })
    while (!isOver) {
      const startMs = performance.now() - waitedMs()
      await fetch('/system/health/live')
      slowestMs = Math.max(slowestMs, performance.now() - waitedMs() - startMs)
      await setTimeout(5)
    }
    assert.equal((await looping).status, 200)
    assert.ok(slowestMs < 1000, `the primary answered after ${slowestMs} ms`)
    const told = () => logs.filter(({ identity, msg }) => identity === 'loud.Loop' && msg.includes('were left out'))
    const written = () => logs.filter(({ msg }) => msg.startsWith('round ')).length
    const leftOut = () => told().reduce((sum, { INFO = 0 }) => sum + Number(INFO), 0)
    await until(() => written() + leftOut() === 1_000_000, 'every line is written or counted')
    assert.ok(written() < 50_000, `${written()} lines`)
    assert.ok(logs.some(({ msg }) => msg === 'the end'))
    assert.match(told()[0]!.msg, new RegExp(`more than ${RATE} in a second`))
  })

  it('the texts of a large record are cut, and its size is told', async () => {
    const { logs, fetch } = service()
    for (const path of ['/large', '/throw', '/large-primary']) await fetch(path)
    const cut = () => logs.filter(({ cut_bytes }) => cut_bytes !== undefined)
    await until(() => cut().length >= 6, 'six records were cut')
    for (const line of cut()) {
      // What the writer puts around the record takes some room, too.
      assert.ok(JSON.stringify(line).length < RECORD_BYTES + 300, `${JSON.stringify(line).length} bytes`)
      // A thrown text is cut before anything else looks at it.
      assert.ok(Number(line.cut_bytes) > (line.msg.startsWith('/throw') ? RECORD_BYTES : 500_000))
    }
    const large = cut().find(({ msg }) => msg === 'large')!
    assert.match(String(large.text), /^x+… \[cut: it had 3000000 characters\]$/)
    assert.match(String(large.list), /^\[7,7,.*cut: it had 200001 characters\]$/)
    assert.equal(large.small, 1)
    assert.ok(cut().some(({ msg }) => /^m+… \[cut: it had 3000000 characters\]$/.test(msg)))
    assert.ok(cut().some(({ msg }) => /^\[88888,.*… \[cut: it had 600001 characters\]$/.test(msg)))
    assert.ok(cut().some(({ msg }) => /^p+… \[cut: it had 3000000 characters\]$/.test(msg)))
    const thrown = cut().find(({ identity, msg }) => identity === 'loud.Large' && msg.startsWith('/throw'))!
    assert.match(thrown.msg, /^\/throw failed: e+… \[cut: it had 3000000 characters\]$/)
  })

  it('malformed requests are all counted, and few are logged', async () => {
    const { logs, fetch } = service()
    await sendMalformed(service(), 300)
    const text = await (await fetch('/system/metrics/prometheus')).text()
    assert.match(text, /^heddle_framing_faults_total\{reason="more than one content-length"\} 300$/m)
    const lines = logs.filter(({ msg }) => msg === 'A connection was closed: more than one content-length')
    assert.deepEqual([lines[0]!.count, lines.length <= 2], [1, true], `${lines.length} lines`)
  })
})

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

async function assertServes(heddle: Heddle): Promise<void> {
  const startedMs = performance.now()
  const { status } = await heddle.fetch('/ok', { signal: AbortSignal.timeout(3000) })
  assert.equal(status, 200)
  assert.ok(performance.now() - startedMs < 2000, `answered after ${performance.now() - startedMs} ms`)
}

describe('a log reader that stalls', () => {
  it('holds nothing up; the least important records are dropped first, and it is told how many', async (t) => {
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

  it('does not hold up the end of the process', async (t) => {
    const heddle = await start(t)
    heddle.process.stdout!.pause()
    for (let n = 0; n < 3; n++) await heddle.fetch('/shout', { signal: AbortSignal.timeout(3000) })
    const ended = once(heddle.process, 'exit')
    heddle.process.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })
})
