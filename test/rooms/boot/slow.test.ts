import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf } from '../lanes/deadly.ts'
import { GOOD, pluginsOf } from './left-out.ts'

const slow = (onBoot: string): string => `export default class Slow {
  #logger
  constructor({ http, logger }) {
    this.#logger = logger
    http.addEndpoint('/slow', 'GET', () => ({ success: true }))
  }
  async onBoot() {
    ${onBoot}
  }
  onReady() { this.#logger.info('slow is ready') }
}`
const LOOPS = {
  'at module level': `for (let n = 0; ; n++) if (n < 0) break\nexport default class Slow {}`,
  'in its onBoot': slow('for (let n = 0; ; n++) if (n < 0) break'),
  'in a timer of its onBoot': slow('setTimeout(() => { for (let n = 0; ; n++) if (n < 0) break })'),
  'in ticks of a timer of its onBoot': slow(
    'setTimeout(() => { let n = 0; const again = () => { n++; process.nextTick(again) }; again() })',
  ),
}

/** Code of a boot that takes until it may go on. */
async function gate(t: Parameters<typeof folderOf>[0]): Promise<{ waits: string; open: () => Promise<void> }> {
  const go = join(await folderOf(t, {}), 'go')
  const waits = `const { existsSync } = await import('node:fs')
    while (!existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 20))`
  return { waits, open: () => writeFile(go, '') }
}

async function started(t: Parameters<typeof startHeddle>[0], code: string, lanes: number) {
  const folder = await folderOf(t, { 'bad/plugins/slow.ts': code, 'good/plugins/good.ts': GOOD })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes, env: { LANE_STALL_MS: '1500' } })
  return { heddle, file: join(folder, 'bad/plugins/slow.ts') }
}

/** Asks for the route of a plugin that boots as it should, until a condition holds. @returns statuses that are not 200 */
async function failuresUntil(heddle: Heddle, isOver: () => Promise<boolean>): Promise<number[]> {
  const failures: number[] = []
  await until(
    async () => {
      const { status } = await heddle.json('/good')
      if (status !== 200) failures.push(status)
      return isOver()
    },
    'the end of the boot',
    60_000,
  )
  return failures
}

for (const [n, [where, code]] of Object.entries(LOOPS).entries()) {
  test(`a plugin that loops ${where} holds nobody up, and is left out with its line`, async (t) => {
    const { heddle } = await started(t, code, (n % 2) + 1)
    const plugins = await until(
      async () => {
        const all = await pluginsOf(heddle)
        return all['good.Good'].status === 'OK' && all
      },
      'the others are served',
      60_000,
    )
    // On a machine that is so busy that they boot slowly, too, its time may be over by then.
    if (plugins['bad.Slow'].status !== 'DEAD') {
      assert.equal(plugins['bad.Slow'].status, 'BOOTING', 'while it loops')
      assert.equal((await heddle.json('/slow')).status, 503, 'an unknown path may be its')
    }
    assert.deepEqual(
      await failuresUntil(heddle, async () => (await pluginsOf(heddle))['bad.Slow'].status === 'DEAD'),
      [],
    )
    // On a busy machine its time is over before it has had so much of a core.
    assert.match(
      (await pluginsOf(heddle))['bad.Slow'].error,
      /(?:stood still for \d+ ms while it booted|did not boot within 30 s) \(.*slow\.ts:\d+:\d+\)/,
    )
    assert.equal((await heddle.json('/slow')).status, 404)
    assert.equal((await boxesOf(heddle)).length, 1, 'one lane has tried it')
    assert.equal(await heddle.stop(), 0)
  })
}

test('a plugin that ends its lane before the others have booted without it is left out, too', async (t) => {
  const code = 'for (const endMs = performance.now() + 1600; performance.now() < endMs; );\n    process.exit(5)'
  const folder = await folderOf(t, {
    'bad/plugins/slow.ts': slow(code),
    'good/plugins/good.ts': `${GOOD.slice(0, -1)}  onBoot() { return new Promise((resolve) => setTimeout(resolve, 800)) }\n}`,
  })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1 })
  await until(async () => (await pluginsOf(heddle))['bad.Slow'].status === 'DEAD', 'it is left out', 30_000)
  assert.match((await pluginsOf(heddle))['bad.Slow'].error, /process\.exit\(5\) was called \(.*slow\.ts:9:\d+\)/)
  await until(() => heddle.logs.some(({ msg }) => msg.startsWith('Plugin bad.Slow failed in boot: ')), 'the line')
  assert.equal((await heddle.json('/slow')).status, 404)
  assert.equal(await heddle.stop(), 0)
})

test('a plugin that boots slowly joins the others when it has booted, without a request that fails', async (t) => {
  const { waits, open } = await gate(t)
  const { heddle } = await started(t, slow(waits), 2)
  assert.equal((await pluginsOf(heddle))['bad.Slow'].status, 'BOOTING')
  assert.equal((await heddle.json('/slow')).status, 503)
  await open()
  const isUp = async (): Promise<boolean> => (await pluginsOf(heddle))['bad.Slow'].status === 'OK'
  assert.deepEqual(await failuresUntil(heddle, isUp), [])
  await allUp(heddle)
  for (let n = 0; n < 6; n++) assert.equal((await heddle.json('/slow')).status, 200)
  assert.equal(heddle.logs.filter(({ msg }) => msg === 'slow is ready').length, 1)
  assert.deepEqual(await boxesOf(heddle), [])
  assert.equal(await heddle.stop(), 0)
})

test('plugins of the primary thread that boot slowly, or never, hold nobody up either', async (t) => {
  const { waits, open } = await gate(t)
  const code = `export default class Slow {
  static thread = 'primary'
  #http
  constructor({ http }) {
    this.#http = http
    http.addEndpoint('/slow', 'GET', () => ({ success: true }))
  }
  async onBoot() {
    ${waits}
    this.#http.addEndpoint('/slower', 'GET', () => ({ success: true }))
  }
}`
  const folder = await folderOf(t, {
    'bad/plugins/slow.ts': code,
    'bad/plugins/never.ts': `export default class Never { static thread = 'primary'; onBoot() { return new Promise(() => {}) } }`,
    'good/plugins/good.ts': GOOD,
  })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes: 1 })
  const { plugins } = (await heddle.json('/system/status')).body
  assert.deepEqual([plugins['bad.Slow'].status, plugins['bad.Never'].status], ['BOOTING', 'BOOTING'])
  assert.equal((await heddle.json('/slow')).status, 503)
  await open()
  const isUp = async (): Promise<boolean> => (await pluginsOf(heddle))['bad.Slow'].status === 'OK'
  assert.deepEqual(await failuresUntil(heddle, isUp), [])
  assert.equal((await heddle.json('/slow')).status, 200)
  assert.equal((await heddle.json('/slower')).status, 200)
  assert.equal(await heddle.stop(), 0)
})

test('a plugin whose onBoot never ends holds nobody up, and new code need not wait for it', async (t) => {
  const { heddle, file } = await started(t, slow('await new Promise(() => {})'), 2)
  assert.equal((await pluginsOf(heddle))['bad.Slow'].status, 'BOOTING')
  assert.equal((await heddle.json('/good')).status, 200)
  await writeFile(file, slow(''))
  heddle.process.kill('SIGHUP')
  const isUp = async (): Promise<boolean> => (await pluginsOf(heddle))['bad.Slow'].status === 'OK'
  assert.deepEqual(await failuresUntil(heddle, isUp), [])
  assert.equal((await heddle.json('/slow')).status, 200)
  await allUp(heddle)
  assert.equal(await heddle.stop(), 0)
})
