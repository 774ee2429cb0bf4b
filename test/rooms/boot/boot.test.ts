import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { LANE_PROTOCOL, type LaneInit } from '../../../src/transport/messages.ts'
import lane from '../../../workers/lane.ts'
import { fewDescriptors, noFewDescriptors } from '../../support/few-descriptors.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { type Bad, onBoot, startBeside } from './left-out.ts'

test('a plugin that fills the memory while it boots is left out, and the service comes up', async (t) => {
  const bad = {
    Fill: {
      code: onBoot('Fill', 'const kept = []\n    for (;;) kept.push(Buffer.alloc(1 << 24, 1))'),
      says: /the process grew by more than 1280 MiB while it booted \(.*Fill\.ts/,
    },
  }
  // On a starved machine it would be ended for its loop before it has taken so much.
  const env = { LANE_MEMORY_MB: '64', LANE_STALL_MS: '60000' }
  const heddle = await startBeside(t, bad, { lanes: 1, env })
  assert.equal(await heddle.stop(), 0)
})

const BROKEN = `Array.prototype.map = JSON.stringify = () => { throw new Error('planted') }`

/** Plugins whose boot leaves a thread where nothing else can boot, each with what is said of it. */
const GREEDY: Bad = {
  Files: {
    code: `import { openSync } from 'node:fs'
try { for (;;) openSync('/dev/null') } catch {}
export default class Files {}`,
    says: /no file descriptor is left \(ulimit -n\) \(.*Files\.ts\)/,
  },
  Later: {
    code: `export default class Later {
  onBoot() { setTimeout(() => { ${BROKEN} }, 20) }
}`,
    // What it has replaced may be called before anybody has looked.
    says: /(?:Array\.prototype\.map was replaced|planted) \(.*Later\.ts(?::2:\d+)?\)/,
  },
  Patch: {
    code: `export default class Patch {
  onBoot() { ${BROKEN} }
}`,
    says: /Array\.prototype\.map was replaced \(.*Patch\.ts:2:\d+\)/,
  },
}

for (const lanes of [1, 2]) {
  test(`plugins that use up or break in their boot what all others need are left out and named: ${lanes} lanes`, {
    skip: noFewDescriptors,
  }, async (t) => {
    const heddle = await startBeside(t, GREEDY, { lanes, env: fewDescriptors(1024) })
    assert.equal(await heddle.stop(), 0)
  })
}

test('a lane of another version of the runtime does not boot, and says what to do', async () => {
  const { port1, port2 } = new MessageChannel()
  const told = once(port2, 'message')
  await lane({ protocol: LANE_PROTOCOL + 1, port: port1 } as LaneInit)
  const [message] = await told
  assert.equal(message.type, 'boot-failed')
  assert.match(message.message, /restart the process/)
  port2.close()
})

test('no more lanes boot at a time than there are cores, and all are up when it serves', async (t) => {
  const cores = availableParallelism()
  const lanes = cores + 2
  const { logs } = await startHeddle(t, { domains: [fixtureDomains('slow-boot')], lanes })
  const said = () => logs.filter(({ msg }) => /^boot (?:begins|ends)$/.test(msg))
  await until(() => said().length === 2 * lanes, 'all have booted')
  // At equal times an end comes first.
  const steps = said().sort((a, b) => Number(a.at) - Number(b.at) || (b.msg < a.msg ? -1 : 1))
  let booting = 0
  let most = 0
  for (const { msg } of steps) {
    booting += msg === 'boot begins' ? 1 : -1
    most = Math.max(most, booting)
  }
  assert.ok(most <= cores, `${most} lanes booted at once on ${cores} cores`)
})

const FALLS = `export default class Good {
  constructor({ http }) {
    http.addEndpoint('/good', 'GET', () => ({ success: true }))
    http.addEndpoint('/fall', 'GET', () => process.exit(3))
  }
}`

const DEAD = `export default class Sell { constructor() { throw new Error('no price list') } }`

test('with BOOT_STRICT a plugin that is dead at the start keeps the process from being ready, until new code mends it', async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/sell.ts': DEAD, 'shop/plugins/good.ts': FALLS })
  const env = { BOOT_STRICT: 'true' }
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1, env })
  const ready = () => heddle.json('/system/health/ready')
  assert.equal((await heddle.json('/good')).status, 200, 'the others are served')
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
  await until(async () => (await ready()).status === 200, 'what dies later does not count')
  assert.equal(await heddle.stop(), 0)
})
