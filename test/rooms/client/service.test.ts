import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { clientFrom } from '../../../src/devtools/client/sources.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { assertCompiles, PAGE } from './compiled.ts'

const COMMAND = fileURLToPath(new URL('../../../src/heddle.cjs', import.meta.url))
const SHOP = fileURLToPath(new URL('../../fixtures/client', import.meta.url))
const SOURCE = readFileSync(new URL('./uses.ts', import.meta.url), 'utf8')

/** Of `uses.ts`, where a client stands beside it. */
interface Uses {
  Client: new (options: object) => unknown
  USES: Record<string, (client: unknown, options: object) => Promise<void>>
  isGone(client: unknown): Promise<void>
}

test('the client of a running service', async (t) => {
  const heddle = await startHeddle(t, { domains: [SHIPPED, SHOP], lanes: 1, env: { API_TITLE: 'the shop' } })
  const text = await (await heddle.fetch('/system/client.ts')).text()
  const folder = await folderOf(t, { 'client.ts': text, 'page.ts': PAGE, 'uses.ts': SOURCE })

  await t.test('is text that depends on routes and events alone, so that it can be committed', async () => {
    assert.equal(await (await heddle.fetch('/system/client.ts')).text(), text)
    const whole = await (await heddle.fetch('/system/client.ts?system=true')).text()
    assert.match(whole, /getSystemStatus.*RuntimeFailure/)
    assert.match(whole, /'runtime\.lane\.died': RuntimeLaneDiedEvent/)
    assert.doesNotMatch(text, /getSystemStatus|runtime\.lane\.died/)
  })

  await t.test('is taken by the strictest compiler, with the programs that use it', () => {
    assertCompiles(folder, ['client.ts', 'page.ts', 'uses.ts'], 'node')
    assertCompiles(folder, ['client.ts', 'page.ts'], 'browser')
  })

  const { Client, isGone, USES }: Uses = await import(join(folder, 'uses.ts'))
  const options = { baseUrl: heddle.url, WebSocket }
  const client = new Client({ baseUrl: heddle.url })
  for (const [name, use] of Object.entries(USES)) await t.test(name, () => use(client, options))

  await t.test('the command writes the same text, of the process that runs and of the sources', async (t) => {
    const out = join(await folderOf(t, {}), 'api/client.ts')
    const env = { DOMAINS_DIR: [SHIPPED, SHOP].join(delimiter), API_TITLE: 'the shop', HTTP_PORT: String(heddle.port) }
    const command = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, 'client', ...args], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      })
      return { status, output: stdout + stderr }
    }
    const running = command('--out', out)
    assert.match(running.output, /is written, from http:\/\/127\.0\.0\.1:\d+\n$/)
    assert.equal(readFileSync(out, 'utf8'), text)
    const booted = command('--boot')
    assert.equal(booted.status, 0, booted.output)
    assert.ok(booted.output === text)
    writeFileSync(out, 'old')
    const stale = command('--out', out, '--check', '--url', `${heddle.url}/`)
    assert.deepEqual([stale.status, readFileSync(out, 'utf8')], [1, 'old'])
    await assert.rejects(clientFrom('http://127.0.0.1:1', undefined, false), /cannot be reached/)
  })

  await heddle.stop()
  await isGone(client)
})
