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

  /** Asks for each value, which stands behind the path and is the token, too, and looks at the lanes afterwards. */
  async function eachOf(path: string): Promise<Set<number>> {
    const statuses = new Set<number>()
    for (const n of NUMBERS) {
      const { status, body } = await service().json(path + n, { headers: { authorization: `Bearer ${n}` } })
      if (status === 500) assert.equal(body.error, 'Internal server error')
      statuses.add(status)
    }
    assert.deepEqual(await lives(), started, 'the lanes live')
    return statuses
  }

  before(async () => {
    started = await lives()
  })

  for (const [place, path, statuses] of [
    ['thrown by a handler', '/throw/', [500]],
    ['rejected by a handler', '/reject/', [500]],
    ['returned by a handler', '/return/', [200, 500]],
    ['resolved by a handler', '/resolve/', [200, 500]],
    ['in a validator', '/check?n=', [500]],
    ['in an authValidator', '/auth?n=', [500]],
    ['as a reply', '/request/', [200]],
    ['in the log, as message and as fields', '/log/', [200]],
    ['in sinks and listeners', '/listen/', [200]],
    ['in calls of tools', '/call/', [200]],
  ] as const) {
    test(place, async () => {
      for (const status of await eachOf(path))
        assert.ok(
          statuses.some((each) => each === status),
          `${status}`,
        )
    })
  }

  test('in a stream; each that was thrown has a line', async () => {
    for (const n of NUMBERS) await (await service().fetch(`/stream/${n}`)).text()
    for (const route of ['throw', 'reject', 'stream'])
      await until(() => faults(`/${route}/:n failed: `).length === NUMBERS.length, `a line for each of ${route}`)
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
    assert.deepEqual(await eachOf('/publish/'), new Set([200]))
    const letters = await until(async () => {
      const all = (await service().json('/system/dead-letters')).body as { event: string; error: unknown }[]
      const own = all.filter(({ event }) => event === 'odd.seen')
      return own.length === NUMBERS.length ? own : undefined
    }, 'the letters')
    for (const { error } of letters) assert.equal(typeof error, 'string')
    assert.deepEqual(await lives(), started)
  })

  test('in a job', async () => {
    const jobLines = () => service().logs.filter(({ msg }) => /^Job odd-\d+ of odd.ThrowOdd failed: /.test(msg))
    await until(() => jobLines().length === NUMBERS.length, 'a line for each', 30_000)
    assert.deepEqual(await lives(), started)
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
