import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { plugin, reload, started } from '../rooms/lanes/reloaded.ts'
import { startLoad } from '../support/load.ts'
import { shareService } from '../support/shared-service.ts'
import { until } from '../support/until.ts'

test('SIGHUP replaces all lanes by the code on disk under load, and no request fails', async (t) => {
  const { heddle, file } = await started(t, { 'tell/plugins/tell.ts': plugin('one') })
  const before = (await heddle.json('/system/lanes')).body
  const load = startLoad({ port: heddle.port, path: '/version', keepAlive: 20, reconnecting: 2, everyMs: 10 })
  await until(() => load.answered > 500, 'the load', 60_000)
  const slow = heddle.json('/slow')
  await until(() => heddle.logs.some(({ msg }) => msg === 'slow begins'), 'the slow request')
  await writeFile(file, plugin('two', `http.addEndpoint('/new', 'GET', () => ({ success: true }))`))
  assert.match(await reload(heddle), /^Reloaded in \d+ ms$/)
  assert.equal((await slow).body.version, 'one', 'what was begun is finished by the old code')
  for (let n = 0; n < 20; n++) assert.equal((await heddle.json('/version')).body.version, 'two')
  assert.equal((await heddle.json('/new')).status, 200)
  await load.stop()
  assert.deepEqual(load.failures, [])
  const after = (await heddle.json('/system/lanes')).body
  for (const n of [0, 1]) {
    assert.notEqual(after[n].started_at, before[n].started_at)
    assert.deepEqual([after[n].state, after[n].restarts, after[n].deaths], ['ready', 0, []])
  }
  assert.equal((await heddle.json('/system/status')).body.reload.ok, true)
  assert.equal(await heddle.stop(), 0)
})

describe('a service that is reloaded again and again', () => {
  let parts: Awaited<ReturnType<typeof started>>
  shareService(async (owner) => {
    parts = await started(owner, {
      'tell/plugins/tell.ts': plugin(
        'one',
        `scheduler.every('old-job', 3_600_000, () => {}); http.addEndpoint('/old', 'GET', () => ({}))`,
      ),
      'tell/plugins/other.ts': `export default class Other { constructor({ http }) { http.addEndpoint('/moves', 'GET', () => ({ by: 'Other' })) } }`,
    })
    return parts.heddle
  })

  test('no event is lost or handled twice over a reload', async () => {
    const { heddle } = parts
    let isReloading = true
    const done = reload(heddle).finally(() => {
      isReloading = false
    })
    let sent = 0
    while (isReloading || sent < 500) {
      const n = sent++
      await heddle.post('/publish', { n })
    }
    assert.match(await done, /^Reloaded/)
    const told = () => heddle.logs.filter(({ msg }) => msg === 'told')
    await until(() => told().length >= sent, 'all events')
    assert.equal(new Set(told().map(({ n }) => n)).size, sent)
    assert.equal(told().length, sent)
  })

  test('routes, subscriptions and jobs follow the code', async () => {
    const { heddle, file, folder } = parts
    assert.equal((await heddle.json('/moves')).body.by, 'Other')
    await writeFile(
      file,
      plugin(
        'two',
        `scheduler.every('new-job', 3_600_000, () => {}); http.addEndpoint('/moves', 'GET', () => ({ by: 'Tell' }))`,
      ),
    )
    await writeFile(
      join(folder, 'tell/plugins/other.ts'),
      `export default class Renamed { constructor({ event_bus, logger }) { event_bus.subscribe('told', () => logger.info('renamed')) } }`,
    )
    assert.match(await reload(heddle), /^Reloaded/)
    assert.equal((await heddle.json('/old')).status, 404)
    assert.equal((await heddle.json('/moves')).body.by, 'Tell')
    const { plugins } = (await heddle.json('/system/status')).body
    assert.equal(plugins['tell.Renamed'].status, 'OK')
    assert.equal(plugins['tell.Other'], undefined)
    assert.deepEqual((await heddle.json('/system/events')).body.topology.told.subscribers.sort(), [
      'tell.Renamed',
      'tell.Tell',
    ])
  })

  test('new code that does not boot is refused, and the old lanes go on', async (t) => {
    const { heddle, file } = parts
    const broken = {
      'a syntax error': [`export default class Tell {\n  constructor( {\n`, /tell\.ts:3:/],
      'a constructor that throws': [plugin('broken', `throw new Error('not today')`), /tell\.Tell: not today/],
      'a missing tool': [plugin('broken').replace('scheduler', 'blockchain'), /Missing tool: blockchain/],
      'an exit while it boots': [plugin('broken', 'process.exit(7)'), /process\.exit\(7\) was called/],
      'an exception of a timer while it boots': [
        plugin(
          'broken',
          `setTimeout(() => { throw new Error('too late') }); const end = Date.now() + 200; while (Date.now() < end);`,
        ).replace(
          'export default class Tell {',
          'export default class Tell {\n  async onBoot() { await new Promise((resolve) => setTimeout(resolve, 500)) }',
        ),
        /too late/,
      ],
    } as const
    for (const [what, [text, reason]] of Object.entries(broken)) {
      await t.test(what, async () => {
        await writeFile(file, text)
        assert.match(await reload(heddle), reason)
        const { ok, error } = (await heddle.json('/system/status')).body.reload
        assert.equal(ok, false)
        assert.match(error, reason)
        for (let n = 0; n < 6; n++) assert.equal((await heddle.json('/version')).body.version, 'two')
        assert.equal((await heddle.json('/system/health/ready')).status, 200)
      })
    }
    await t.test('and mended code is taken', async () => {
      await writeFile(file, plugin('three'))
      assert.match(await reload(heddle), /^Reloaded/)
      assert.equal((await heddle.json('/version')).body.version, 'three')
    })
  })
})
