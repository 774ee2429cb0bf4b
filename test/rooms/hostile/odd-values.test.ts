import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { VALUES } from '../../fixtures/unreadable/odd/values.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { openWebSocket } from '../../support/web-socket.ts'

const UNREADABLE = fileURLToPath(new URL('../../fixtures/unreadable', import.meta.url))
const NUMBERS = VALUES.map((_, n) => n)

/** Plugins that throw in a part of their life, one for each value. */
const mortals = (stage: 'onBoot' | 'onReady' | 'onStop'): Record<string, string> =>
  Object.fromEntries(
    NUMBERS.map((n) => [
      `life/plugins/${stage.toLowerCase()}-${n}.ts`,
      `import { VALUES } from ${JSON.stringify(`${UNREADABLE}/odd/values.ts`)}
       export default class ${stage}${n} { ${stage}() { throw VALUES[${n}][1]() } }`,
    ]),
  )

describe(`${VALUES.length} values that cannot be read cost one answer each, and no lane`, () => {
  const service = shareService(async (t) => {
    const files = { ...mortals('onBoot'), ...mortals('onReady'), ...mortals('onStop') }
    return startHeddle(t, {
      domains: [UNREADABLE, SHIPPED, await folderOf(t, files)],
      // It looks at all that is thrown and logged.
      env: { HISTORY_ENABLED: 'true' },
    })
  })
  let started: string[]

  const lanes = async (): Promise<LaneInfo[]> => (await service().json('/system/lanes')).body
  const lives = async (): Promise<string[]> =>
    (await lanes()).map(({ index, started_at, restarts, state }) => `${index} ${started_at} ${restarts} ${state}`)
  const faults = (start: string) => service().logs.filter(({ msg }) => msg.startsWith(start))

  /** Asks for each value, and looks at the lanes afterwards. */
  async function eachOf(path: (n: number) => string, headers?: (n: number) => Record<string, string>) {
    const answers = []
    for (const n of NUMBERS)
      answers.push(await service().json(path(n), headers === undefined ? {} : { headers: headers(n) }))
    assert.deepEqual(await lives(), started, 'the lanes live')
    for (const { status, body } of answers) if (status === 500) assert.equal(body.error, 'Internal server error')
    return answers.map(({ status }) => status)
  }

  before(async () => {
    started = await lives()
  })

  for (const place of ['throw', 'reject']) {
    test(`in a handler: ${place}`, async () => {
      assert.deepEqual(new Set(await eachOf((n) => `/${place}/${n}`)), new Set([500]))
      await until(() => faults(`/${place}/:n failed: `).length === NUMBERS.length, 'a line for each')
    })
  }

  for (const place of ['return', 'resolve']) {
    test(`as the answer of a handler: ${place}`, async () => {
      for (const status of await eachOf((n) => `/${place}/${n}`)) assert.ok(status === 200 || status === 500)
    })
  }

  test('in a validator', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/check?n=${n}`)), new Set([500]))
  })

  test('in an authValidator', async () => {
    const statuses = await eachOf(
      () => '/auth',
      (n) => ({ authorization: `Bearer ${n}` }),
    )
    assert.deepEqual(new Set(statuses), new Set([500]))
  })

  test('in a stream', async () => {
    for (const n of NUMBERS) await (await service().fetch(`/stream/${n}`)).text()
    await until(() => faults('/stream/:n failed: ').length === NUMBERS.length, 'a line for each')
    assert.deepEqual(await lives(), started)
  })

  for (const when of ['open', 'message', 'close']) {
    test(`in a socket: ${when}`, async () => {
      for (const n of NUMBERS) {
        const socket = await openWebSocket(service().port, `/socket/${when}/${n}`)
        if (when === 'message') socket.send('now')
        if (when === 'close') await socket.close()
        else await socket.ended()
      }
      const own = () => faults('/socket/:when/:n failed: ').length
      const places = ['open', 'message', 'close'].indexOf(when) + 1
      await until(() => own() === places * NUMBERS.length, 'a line for each')
      assert.deepEqual(await lives(), started)
    })
  }

  test('in a subscriber: a dead letter with a text for each', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/publish/${n}`)), new Set([200]))
    const letters = await until(async () => {
      const { body } = await service().json('/system/dead-letters')
      return body.length === NUMBERS.length ? (body as { error: unknown }[]) : undefined
    }, 'the letters')
    for (const { error } of letters) assert.equal(typeof error, 'string')
    assert.deepEqual(await lives(), started)
  })

  test('as a reply', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/request/${n}`)), new Set([200]))
  })

  test('in a job', async () => {
    await until(() => jobLines() === NUMBERS.length, 'a line for each', 30_000)
    assert.deepEqual(await lives(), started)
  })
  const jobLines = (): number =>
    service().logs.filter(({ msg }) => /^Job odd-\d+ of odd.ThrowOdd failed: /.test(msg)).length

  test('in the log, as message and as fields', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/log/${n}`)), new Set([200]))
  })

  test('in sinks and listeners', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/listen/${n}`)), new Set([200]))
  })

  test('in calls of tools', async () => {
    assert.deepEqual(new Set(await eachOf((n) => `/call/${n}`)), new Set([200]))
  })

  test('in the boot of a plugin, and in its onReady', async () => {
    const { plugins } = (await service().json('/system/status')).body
    for (const n of NUMBERS) assert.equal(typeof plugins[`life.onBoot${n}`]?.error, 'string', VALUES[n]![0])
    await until(
      () => service().logs.filter(({ msg }) => msg.includes(' failed in onReady: ')).length >= NUMBERS.length,
      'a line for each',
    )
  })
})
