import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boot, plugin } from 'heddle/testing'
import sayHello from '../../domains/hello/plugins/say-hello.ts'

test('it greets by name', async (t) => {
  const app = await plugin(t, sayHello, { domain: 'hello' })
  const { status, body } = await app.get('/hello/world')
  assert.equal(status, 200)
  assert.deepEqual(body, { success: true, data: { hello: 'world' } })

  const refused = await app.get('/hello/nobody')
  assert.equal(refused.status, 404)
  assert.equal(refused.body.error, 'There is nobody to greet')
})

test('it does so in a process with lanes', async (t) => {
  const app = await boot(t, { domains: ['hello'] })
  assert.deepEqual((await app.get('/hello/world')).body, { success: true, data: { hello: 'world' } })
})
