import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const GOOD = `export default class Good {
  constructor({ http }) {
    http.addEndpoint('/good', 'GET', () => ({ success: true }))
    http.addEndpoint('/fall', 'GET', () => process.exit(3))
  }
}`
const DEAD = `export default class Sell { constructor() { throw new Error('no price list') } }`

test('with BOOT_STRICT a plugin that is dead at the start keeps the process from being ready, until new code mends it', {
  timeout: 120_000,
}, async (t) => {
  const files = { 'shop/plugins/sell.ts': DEAD, 'shop/plugins/good.ts': GOOD }
  for (const BOOT_STRICT of ['false', 'true']) {
    const folder = await folderOf(t, files)
    const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1, env: { BOOT_STRICT } })
    const ready = () => heddle.json('/system/health/ready')
    assert.equal((await heddle.json('/good')).status, 200, 'the others are served')
    if (BOOT_STRICT === 'false') {
      assert.equal((await ready()).status, 200)
      assert.equal(await heddle.stop(), 0)
      continue
    }
    const { status, body } = await ready()
    assert.equal(status, 503)
    assert.match(JSON.stringify(body), /plugin shop\.Sell: no price list/)
    assert.ok(heddle.logs.some(({ msg }) => msg === 'Not ready: plugin shop.Sell: no price list'))
    await writeFile(join(folder, 'shop/plugins/sell.ts'), 'export default class Sell {}')
    heddle.process.kill('SIGHUP')
    await until(async () => (await ready()).status === 200, 'the reload', 30_000)

    await heddle.fetch('/fall')
    await writeFile(join(folder, 'shop/plugins/sell.ts'), DEAD)
    await until(async () => (await heddle.json('/good')).status === 200, 'the lane', 30_000)
    await until(
      async () => (await heddle.json('/system/health/ready')).status === 200,
      'what dies later does not count',
    )
    assert.equal(await heddle.stop(), 0)
  }
})
