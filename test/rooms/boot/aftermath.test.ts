import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { boxesOf, deathsIn } from '../lanes/deadly.ts'

const GOOD = `export default class Good {
  constructor({ http }) { http.addEndpoint('/good', 'GET', () => ({ success: true })) }
}`
const onBoot = (name: string, code: string): string => `import net from 'node:net'
export default class ${name} {
  async onBoot() {
    ${code}
  }
}`

/** Plugins that boot, and whose boot has begun what ends the thread, each with what is said of it. */
const FAILING: Record<string, { code: string; says: RegExp }> = {
  Timer: {
    code: onBoot('Timer', `setTimeout(() => { throw new Error('thrown by a timer') }, 50)`),
    says: /thrown by a timer \(.*Timer\.ts:4:\d+\)/,
  },
  Later: {
    code: onBoot('Later', `setTimeout(() => { throw new Error('thrown later') }, 300)`),
    says: /thrown later \(.*Later\.ts:4:\d+\)/,
  },
  Module: {
    code: `setTimeout(() => { throw new Error('thrown by the module') }, 20)\n${onBoot('Module', '')}`,
    says: /thrown by the module \(.*Module\.ts:1:\d+\)/,
  },
  Constructor: {
    code: `export default class Constructor {
  constructor() { setTimeout(() => { throw new Error('thrown by the constructor') }, 20) }
}`,
    says: /thrown by the constructor \(.*Constructor\.ts:2:\d+\)/,
  },
  Socket: { code: onBoot('Socket', `net.connect(1, '127.0.0.1')`), says: /ECONNREFUSED.* \(.*Socket\.ts\)/ },
  Rejection: {
    code: onBoot('Rejection', `Promise.reject(new Error('nobody awaits it'))`),
    says: /nobody awaits it \(.*Rejection\.ts:4:\d+\)/,
  },
  ModuleRejection: {
    code: `Promise.reject(new Error('nobody awaits the module'))\n${onBoot('ModuleRejection', '')}`,
    says: /nobody awaits the module \(.*ModuleRejection\.ts:1:\d+\)/,
  },
  LateRejection: {
    code: onBoot(
      'LateRejection',
      `void new Promise((_, reject) => setTimeout(reject, 300, new Error('rejected late')))`,
    ),
    says: /rejected late \(.*LateRejection\.ts:4:\d+\)/,
  },
  NoError: { code: onBoot('NoError', 'Promise.reject(undefined)'), says: /undefined \(.*NoError\.ts\)/ },
}

/** Often enough to see any time without a lane. */
const ASKED_EVERY_MS = 10

/** Asks for the route of an innocent plugin. @returns statuses that are not 200 */
async function failuresOf(heddle: Heddle, forMs: number): Promise<number[]> {
  const failures: number[] = []
  for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
    const { status } = await heddle.json('/good')
    if (status !== 200) failures.push(status)
    await setTimeout(ASKED_EVERY_MS)
  }
  return failures
}

const pluginsOf = async (heddle: Heddle) => (await heddle.json('/system/status')).body.plugins

for (const lanes of [1, 2]) {
  test(`plugins whose boot has begun what ends lanes are left out and named, and all others are served: ${lanes} lanes`, {
    timeout: 180_000,
  }, async (t) => {
    const files = Object.entries(FAILING).map(([name, { code }]) => [`bad/plugins/${name}.ts`, code])
    const folder = await folderOf(t, { ...Object.fromEntries(files), 'good/plugins/good.ts': GOOD })
    const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes })
    assert.deepEqual(await failuresOf(heddle, 1500), [])
    const plugins = await pluginsOf(heddle)
    for (const [name, { says }] of Object.entries(FAILING)) {
      assert.equal(plugins[`bad.${name}`].status, 'DEAD', name)
      assert.match(plugins[`bad.${name}`].error, says)
    }
    assert.equal(plugins['good.Good'].status, 'OK')
    assert.ok(deathsIn(heddle).length <= lanes * Object.keys(FAILING).length, 'none costs a lane twice')
    assert.equal((await heddle.json('/system/health/ready')).status, 200)
    assert.equal(await heddle.stop(), 0)
  })
}

for (const [kind, queue] of [
  ['ticks', 'process.nextTick(again)'],
  ['microtasks', 'Promise.resolve().then(again)'],
] as const) {
  test(`a plugin whose boot has begun a loop of ${kind} is left out and named, and all others are served`, {
    timeout: 120_000,
  }, async (t) => {
    const code = `setTimeout(() => { const again = () => ${queue}; again() }, 20)\n${onBoot('Loop', '')}`
    const folder = await folderOf(t, { 'bad/plugins/Loop.ts': code, 'good/plugins/good.ts': GOOD })
    const env = { LANE_STALL_MS: '2000' }
    const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 2, env })
    await until(async () => (await pluginsOf(heddle))['bad.Loop']?.status === 'DEAD', 'it is left out', 60_000)
    assert.match((await pluginsOf(heddle))['bad.Loop'].error, /(?:stood still|grew) .*\(.*Loop\.ts:1:\d+\)/)
    // The lanes that died of it are started again, on a busy machine for longer than they take to say why.
    await until(async () => (await heddle.json('/good')).status === 200, 'a lane', 60_000)
    assert.deepEqual(await failuresOf(heddle, 300), [])
    for (const { msg } of deathsIn(heddle)) assert.match(msg, /Loop\.ts:1:\d+$/, 'each lane that died of it names it')
    assert.equal(await heddle.stop(), 0)
  })
}

test('a plugin that ends lanes by what its boot has begun long before is left out, until there is new code', {
  timeout: 120_000,
}, async (t) => {
  const bad = (code: string): string => `export default class Bad {
  constructor({ http }) { http.addEndpoint('/bad', 'GET', () => ({ success: true })) }
  onBoot() { ${code} }
}`
  const folder = await folderOf(t, {
    'bad/plugins/bad.ts': bad(`setTimeout(() => { throw new Error('seconds later') }, 2500).unref()`),
    'good/plugins/good.ts': GOOD,
  })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  assert.equal((await heddle.json('/bad')).status, 200)
  await until(() => deathsIn(heddle).length === 2, 'both deaths', 30_000)
  await until(async () => (await pluginsOf(heddle))['bad.Bad']?.status === 'DEAD', 'it is left out', 30_000)
  assert.match(
    (await pluginsOf(heddle))['bad.Bad'].error,
    /left behind when it booted: seconds later \(.*bad\.ts:3:\d+\)/,
  )
  const [box] = await boxesOf(heddle)
  assert.equal(box!.guilty!.plugin, 'bad.Bad')
  assert.equal(box!.guilty!.handler, 'onBoot')
  await until(async () => (await heddle.json('/bad')).status === 503, 'no lane has it any more', 30_000)
  assert.deepEqual(await failuresOf(heddle, 4000), [])
  assert.equal(deathsIn(heddle).length, 2, 'no lane has died of it again')

  await writeFile(join(folder, 'bad/plugins/bad.ts'), bad(''))
  heddle.process.kill('SIGHUP')
  await until(async () => (await heddle.json('/bad')).status === 200, 'it is back', 30_000)
  assert.equal(await heddle.stop(), 0)
})

test('on the primary thread such plugins are left out, too, and the process lives on', {
  timeout: 120_000,
}, async (t) => {
  const onPrimary = (code: string): string =>
    code.replace(/(export default class \w+ \{)\n/, "$1 static thread = 'primary'\n")
  const files = Object.entries(FAILING).map(([name, { code }]) => [`bad/plugins/${name}.ts`, onPrimary(code)])
  const stray = `export default class Stray {
  static thread = 'primary'
  constructor({ http }) {
    http.addEndpoint('/stray', 'GET', () => {
      setTimeout(() => { throw new Error('thrown after the answer') })
      return { success: true }
    })
  }
}`
  const folder = await folderOf(t, {
    ...Object.fromEntries(files),
    'good/plugins/good.ts': GOOD,
    'good/plugins/stray.ts': stray,
  })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  assert.deepEqual(await failuresOf(heddle, 1500), [])
  const plugins = await pluginsOf(heddle)
  for (const [name, { says }] of Object.entries(FAILING)) {
    assert.equal(plugins[`bad.${name}`].status, 'DEAD', name)
    assert.match(plugins[`bad.${name}`].error, says)
  }
  assert.equal(plugins['good.Good'].status, 'OK')

  // Of a handler it is logged, and nothing else.
  assert.equal((await heddle.json('/stray')).status, 200)
  await until(
    () => heddle.logs.some(({ msg }) => /good\.Stray threw.*thrown after the answer \(.*stray\.ts:5:\d+\)/.test(msg)),
    'the line',
  )
  assert.equal((await heddle.json('/stray')).status, 200)
  assert.deepEqual(await failuresOf(heddle, 300), [])
  assert.equal(await heddle.stop(), 0)
})

test('a reload lives through what the new code has begun in its boot, or the old lanes stay', {
  timeout: 180_000,
}, async (t) => {
  const quiet = onBoot('Change', '')
  const folder = await folderOf(t, { 'bad/plugins/change.ts': quiet, 'good/plugins/good.ts': GOOD })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  const ended = () => heddle.logs.filter(({ msg }) => /^(?:Reloaded|Not reloaded)/.test(msg))
  for (const [n, name] of ['Later', 'Socket', 'LateRejection', 'Timer'].entries()) {
    const { code, says } = FAILING[name]!
    await writeFile(join(folder, 'bad/plugins/change.ts'), code.replace(name, 'Change'))
    heddle.process.kill('SIGHUP')
    const asking = failuresOf(heddle, 2500)
    await until(() => ended().length > n, `the reload with ${name}`, 60_000)
    assert.deepEqual(await asking, [], name)
    const { reload } = (await heddle.json('/system/status')).body
    assert.equal(reload.ok, false, name)
    assert.match(reload.error, new RegExp(`bad\\.Change: .*${says.source.replace(`${name}\\.ts`, 'change\\.ts')}`))
    assert.equal((await pluginsOf(heddle))['bad.Change'].status, 'OK', 'the old code goes on')
  }
  await writeFile(join(folder, 'bad/plugins/change.ts'), quiet)
  heddle.process.kill('SIGHUP')
  await until(() => ended().length === 5, 'the last reload', 60_000)
  assert.match(ended().at(-1)!.msg, /^Reloaded/)
  assert.equal(await heddle.stop(), 0)
})
