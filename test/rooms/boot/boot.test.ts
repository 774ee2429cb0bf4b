import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MessageChannel } from 'node:worker_threads'
import { LANE_PROTOCOL, type LaneInit } from '../../../src/transport/messages.ts'
import lane from '../../../workers/lane.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const harmful = {
  'exit.ts': 'export default class Exit { onBoot() { process.exit(9) } }',
  'throw.ts': `export default class Throw {
  async onBoot() {
    setTimeout(() => {
      throw new Error('much too late')
    }, 1)
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
}`,
  'load.ts': 'process.exit(8)\nexport default class Load {}',
}

test('a plugin that ends its lane while it boots is left out, named with its line, and the service comes up', {
  timeout: 120_000,
}, async (t) => {
  const files = Object.fromEntries(Object.entries(harmful).map(([name, text]) => [`bad/plugins/${name}`, text]))
  const folder = await folderOf(t, {
    ...files,
    'good/plugins/good.ts': `export default class Good { constructor({ http }) { http.addEndpoint('/good', 'GET', () => ({ success: true })) } }`,
  })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  assert.equal((await heddle.json('/good')).status, 200)
  assert.equal((await heddle.json('/system/health/ready')).status, 200)
  const { plugins } = (await heddle.json('/system/status')).body
  assert.deepEqual(
    [plugins['bad.Exit'].status, plugins['bad.Throw'].status, plugins['bad.Load'].status],
    ['DEAD', 'DEAD', 'DEAD'],
  )
  assert.match(
    plugins['bad.Exit'].error,
    /brought down a lane while it booted: process\.exit\(9\) was called \(.*exit\.ts:1:\d+\)/,
  )
  assert.match(plugins['bad.Throw'].error, /much too late \(.*throw\.ts:4:\d+\)/)
  assert.match(plugins['bad.Load'].error, /process\.exit\(8\) was called \(.*load\.ts:1:\d+\)/)
  assert.equal(await heddle.stop(), 0)
})

test('a plugin that fills the memory while it boots is left out, and the service comes up', {
  timeout: 120_000,
}, async (t) => {
  const folder = await folderOf(t, {
    'bad/plugins/fill.ts': `export default class Fill {
  onBoot() {
    const kept = []
    for (;;) kept.push(Buffer.alloc(1 << 24, 1))
  }
}`,
  })
  // On a starved machine it would be ended for its loop before it has taken so much.
  const env = { LANE_MEMORY_MB: '64', LANE_STALL_MS: '60000' }
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1, env })
  const isReady = async (): Promise<boolean> => (await heddle.json('/system/health/ready')).status === 200
  await until(isReady, 'all others', 60_000)
  const fill = async () => (await heddle.json('/system/status')).body.plugins['bad.Fill']
  await until(async () => (await fill()).status === 'DEAD', 'it is left out', 60_000)
  assert.match((await fill()).error, /the process grew by more than 1280 MiB while it booted \(.*fill\.ts/)
  assert.equal(await heddle.stop(), 0)
})

const FEW_DESCRIPTORS = fileURLToPath(new URL('../../support/few-descriptors.cjs', import.meta.url))

const noLimit = spawnSync('prlimit', ['--version']).status === 0 ? false : 'no prlimit of util-linux here'

const BROKEN = `Array.prototype.map = JSON.stringify = () => { throw new Error('planted') }`

/** Plugins whose boot leaves a thread where nothing else can boot, each with what is said of it. */
const GREEDY: Record<string, { code: string; says: RegExp }> = {
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
    says: /Array\.prototype\.map is broken: planted \(.*Later\.ts:2:\d+\)/,
  },
  Patch: {
    code: `export default class Patch {
  onBoot() { ${BROKEN} }
}`,
    says: /Array\.prototype\.map is broken: planted \(.*Patch\.ts:2:\d+\)/,
  },
}

for (const lanes of [1, 2]) {
  test(`plugins that use up or break in their boot what all others need are left out and named: ${lanes} lanes`, {
    timeout: 120_000,
    skip: noLimit,
  }, async (t) => {
    const files = Object.entries(GREEDY).map(([name, { code }]) => [`bad/plugins/${name}.ts`, code])
    const folder = await folderOf(t, {
      ...Object.fromEntries(files),
      'good/plugins/good.ts': `export default class Good { constructor({ http }) { http.addEndpoint('/good', 'GET', () => ({ success: true })) } }`,
    })
    const env = { NODE_OPTIONS: `--require=${FEW_DESCRIPTORS}`, TEST_DESCRIPTORS: '1024' }
    const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes, env })
    const pluginsOf = async () => (await heddle.json('/system/status')).body.plugins
    for (const [name, { says }] of Object.entries(GREEDY)) {
      await until(async () => (await pluginsOf())[`bad.${name}`]?.status === 'DEAD', name, 60_000)
      assert.match((await pluginsOf())[`bad.${name}`].error, says)
    }
    assert.equal((await pluginsOf())['good.Good'].status, 'OK')
    for (let n = 0; n < 20; n++) assert.equal((await heddle.json('/good')).status, 200)
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

const SLOW_BOOT = fileURLToPath(new URL('../../fixtures/slow-boot', import.meta.url))

test('no more lanes boot at a time than there are cores, and all are up when it serves', async (t) => {
  const cores = availableParallelism()
  const lanes = cores + 2
  const { logs } = await startHeddle(t, { domains: [SLOW_BOOT], lanes })
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
