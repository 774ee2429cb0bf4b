import assert from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'

const STARTED = fixtureDomains('started/noted')
const foldersOf = (env: Record<string, string>) => loadSettings(env).settings.domainsDir

test('a clone that serves the domains of an application alone has /system, as the package has', async (t) => {
  const [own, shipped, ...more] = foldersOf({ DOMAINS_DIR: STARTED })
  assert.deepEqual([own, more], [STARTED, []])
  assert.deepEqual(readdirSync(shipped!), ['system'], 'and none of the examples')
  const heddle = await startHeddle(t, { domains: [STARTED], lanes: 1, env: { SYSTEM_DOMAIN: 'true' } })
  const { status, body } = await heddle.json('/system/status')
  assert.equal(status, 200)
  const failed = Object.entries<{ status: string }>(body.plugins).filter(([, plugin]) => plugin.status !== 'OK')
  assert.deepEqual(failed, [])
  assert.equal((await heddle.fetch('/system/dashboard')).status, 200)
  assert.equal((await heddle.fetch('/hello/world')).status, 404)
})

test('it is left out by SYSTEM_DOMAIN=false, and where an application has a domain of that name', (t) => {
  assert.deepEqual(foldersOf({ DOMAINS_DIR: STARTED, SYSTEM_DOMAIN: 'false' }), [STARTED])
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'system'))
  assert.deepEqual(foldersOf({ DOMAINS_DIR: [STARTED, folder].join(delimiter) }), [STARTED, folder])
  assert.deepEqual(foldersOf({}), [resolve('domains')])
})
