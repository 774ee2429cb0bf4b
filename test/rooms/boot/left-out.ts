/** A start beside plugins that have to be left out: each is named, and the others are served. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

export const GOOD = `export default class Good {
  constructor({ http }) { http.addEndpoint('/good', 'GET', () => ({ success: true })) }
}`

/** By the name of its class, and of its file: a plugin, and what is said of it. */
export type Bad = Record<string, { code: string; says: RegExp }>

export const onBoot = (name: string, code: string): string => `import net from 'node:net'
export default class ${name} {
  async onBoot() {
    ${code}
  }
}`

/** Often enough to see any time without a lane. */
const ASKED_EVERY_MS = 10

/** Asks for the route of an innocent plugin. @returns statuses that are not 200 */
export async function failuresOf(heddle: Heddle, forMs: number): Promise<number[]> {
  const failures: number[] = []
  for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
    const { status } = await heddle.json('/good')
    if (status !== 200) failures.push(status)
    await setTimeout(ASKED_EVERY_MS)
  }
  return failures
}

export const pluginsOf = async (heddle: Heddle) => (await heddle.json('/system/status')).body.plugins

/**
 * @param watchMs for so long nobody may be refused from the start on
 * @param others further files of domains
 * @returns the service, which is ready
 */
export async function startBeside(
  t: TestContext,
  bad: Bad,
  {
    lanes = 2,
    env = {},
    watchMs = 0,
    others = {},
  }: { lanes?: number; env?: Record<string, string>; watchMs?: number; others?: Record<string, string> } = {},
): Promise<Heddle> {
  const files = Object.entries(bad).map(([name, { code }]) => [`bad/plugins/${name}.ts`, code])
  const folder = await folderOf(t, { ...Object.fromEntries(files), 'good/plugins/good.ts': GOOD, ...others })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes, env })
  assert.deepEqual(await failuresOf(heddle, watchMs), [])
  for (const [name, { says }] of Object.entries(bad)) {
    await until(async () => (await pluginsOf(heddle))[`bad.${name}`]?.status === 'DEAD', name, 60_000)
    assert.match((await pluginsOf(heddle))[`bad.${name}`].error, says)
  }
  // Lanes that died of it are started again, on a busy machine for longer than they take to say why.
  await until(async () => (await heddle.json('/system/health/ready')).status === 200, 'ready', 60_000)
  await until(async () => (await heddle.json('/good')).status === 200, 'a lane', 60_000)
  assert.equal((await pluginsOf(heddle))['good.Good'].status, 'OK')
  assert.deepEqual(await failuresOf(heddle, 300), [])
  return heddle
}
