import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { boxesOf, deathsIn } from '../lanes/deadly.ts'
import { type Bad, failuresOf, GOOD, onBoot, pluginsOf, startBeside } from './left-out.ts'

/** Plugins that boot, and whose boot has begun what ends the thread, each with what is said of it. */
const FAILING: Bad = {
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

/** Plugins that end the lane before they have booted. */
const ENDING: Bad = {
  Exit: {
    code: 'export default class Exit { onBoot() { process.exit(9) } }',
    says: /brought down a lane while it booted: process\.exit\(9\) was called \(.*Exit\.ts:1:\d+\)/,
  },
  Load: {
    code: 'process.exit(8)\nexport default class Load {}',
    says: /process\.exit\(8\) was called \(.*Load\.ts:1:\d+\)/,
  },
  Throw: {
    code: onBoot(
      'Throw',
      `setTimeout(() => { throw new Error('much too late') }, 1)
    await new Promise((resolve) => setTimeout(resolve, 2000))`,
    ),
    says: /much too late \(.*Throw\.ts:4:\d+\)/,
  },
}

for (const lanes of [1, 2]) {
  test(`plugins that end lanes while they boot, or by what that has begun, are left out and named, and all others are served: ${lanes} lanes`, async (t) => {
    const bad = { ...FAILING, ...ENDING }
    const heddle = await startBeside(t, bad, { lanes, watchMs: 1500 })
    assert.ok(deathsIn(heddle).length <= lanes * Object.keys(bad).length, 'none costs a lane twice')
    assert.equal(await heddle.stop(), 0)
  })
}

for (const [kind, queue] of [
  ['ticks', 'process.nextTick(again)'],
  ['microtasks', 'Promise.resolve().then(again)'],
] as const) {
  test(`a plugin whose boot has begun a loop of ${kind} is left out and named, and all others are served`, async (t) => {
    const code = `setTimeout(() => { const again = () => ${queue}; again() }, 20)\n${onBoot('Loop', '')}`
    const bad = { Loop: { code, says: /(?:stood still|grew) .*\(.*Loop\.ts[:\d]*\)/ } }
    const heddle = await startBeside(t, bad, { env: { LANE_STALL_MS: '2000' } })
    for (const { msg } of deathsIn(heddle)) assert.match(msg, /Loop\.ts[:\d]*$/, 'each lane that died of it names it')
    assert.equal(await heddle.stop(), 0)
  })
}

test('a plugin that ends lanes by what its boot has begun long before is left out, until there is new code', async (t) => {
  const bad = (code: string): string => `export default class Bad {
  constructor({ http }) { http.addEndpoint('/bad', 'GET', () => ({ success: true })) }
  onBoot() { ${code} }
}`
  const folder = await folderOf(t, { 'good/plugins/good.ts': GOOD, 'bad/plugins/bad.ts': '' })
  // The first lanes stay until they have been seen.
  const seen = join(folder, 'seen')
  const end = `if (performance.now() > atMs && existsSync('${seen}')) throw new Error('seconds later')`
  await writeFile(
    join(folder, 'bad/plugins/bad.ts'),
    `import { existsSync } from 'node:fs'
${bad(`const atMs = performance.now() + 2500; setInterval(() => { ${end} }, 50).unref()`)}`,
  )
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  assert.equal((await heddle.json('/bad')).status, 200)
  await writeFile(seen, '')
  await until(() => deathsIn(heddle).length === 2, 'both deaths', 30_000)
  await until(async () => (await pluginsOf(heddle))['bad.Bad']?.status === 'DEAD', 'it is left out', 30_000)
  assert.match(
    (await pluginsOf(heddle))['bad.Bad'].error,
    /left behind when it booted: seconds later \(.*bad\.ts:4:\d+\)/,
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

test('on the primary thread such plugins are left out, too, and the process lives on', async (t) => {
  const onPrimary = (code: string): string =>
    code.replace(/(export default class \w+ \{)\n/, "$1 static thread = 'primary'\n")
  const bad = Object.entries(FAILING).map(([name, { code, says }]) => [name, { code: onPrimary(code), says }])
  const heddle = await startBeside(t, Object.fromEntries(bad), { watchMs: 1500 })
  assert.equal(await heddle.stop(), 0)
})

test('a reload lives through what the new code has begun in its boot, or the old lanes stay', async (t) => {
  const quiet = onBoot('Change', '')
  const folder = await folderOf(t, { 'bad/plugins/change.ts': quiet, 'good/plugins/good.ts': GOOD })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder] })
  const ended = () => heddle.logs.filter(({ msg }) => /^(?:Reloaded|Not reloaded)/.test(msg))
  for (const [n, name] of ['Later', 'Socket'].entries()) {
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
  await until(() => ended().length === 3, 'the last reload', 60_000)
  assert.match(ended().at(-1)!.msg, /^Reloaded/)
  assert.equal(await heddle.stop(), 0)
})
