import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { boot } from '#heddle/testing'
import { run } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'

const HOOKED = new URL('../../fixtures/hooked/', import.meta.url)
const DESK = new URL('../../fixtures/testing/desk', import.meta.url)

test('a runtime that does not come up says why', async () => {
  await assert.rejects(boot({ domains: ['nowhere'] }), /There is no domain nowhere in .*, but .*users/)
  await assert.rejects(
    boot({ domains: ['users'], env: { LOGIN_MAX_ATTEMPTS: 'five' } }),
    /^Error: Plugins did not come up:\n {2}users\.LogIn: .*LOGIN_MAX_ATTEMPTS.*\nThe log of the runtime:\n/,
  )
  await assert.rejects(
    boot({ domains: ['users'], env: { LANES: 'many' } }),
    /did not start, it ended with 78\.[\s\S]*LANES: expected/,
  )
})

test('the log is shown when the test fails, and only then', async () => {
  const file = fileURLToPath(new URL('../../fixtures/testing/fails-and-passes.ts', import.meta.url))
  const { output } = await run(process.execPath, [...LOADER, '--test', file], process.cwd())
  assert.match(output, /# pass 1\n# fail 2|ℹ pass 1\nℹ fail 2/)
  assert.equal(output.match(/The log of the runtime:/g)?.length, 2, output)
  for (const shown of ['INFO db  Applied migration desk/001_tickets', 'INFO test.Talk  alone and failed'])
    assert.ok(output.includes(shown), output)
  assert.ok(!output.includes('all went well'), output)
})

test('without a test it ends with its block, and leaves nothing behind', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'kept.db')
  let url: string
  {
    await using app = await boot({ domains: [DESK], allowDead: true, env: { SQLITE_PATH: path } })
    url = app.url
    assert.equal((await app.post('/tickets')).status, 200)
  }
  assert.ok(existsSync(path))
  await assert.rejects(fetch(url))
})

test('chosen domains have the hooks of their application, wherever they are', async (t) => {
  const domains = [new URL('other', HOOKED), DESK]
  const app = await boot(t, { domains })
  assert.deepEqual(Object.keys(app.plugins).sort(), ['app', 'desk.OpenTicket', 'other.Greet'])
  assert.equal((await app.get('/greet')).headers.get('x-steps'), 'app,app 200')
  assert.equal((await app.get('/greet', { headers: { 'x-stop': 'app' } })).status, 400)
})
