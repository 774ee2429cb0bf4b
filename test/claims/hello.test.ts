import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../support/databases.ts'
import { startHeddle } from '../support/heddle.ts'
import { shareService } from '../support/shared-service.ts'

describeOnDatabases('examples', (database) => {
  const heddleOf = shareService(async (owner) => startHeddle(owner, { lanes: 2, env: await database.env(owner) }))

  test('the hello example greets whom the path names', async () => {
    const { json } = heddleOf()
    assert.deepEqual((await json('/hello/world')).body, { success: true, data: { hello: 'world' } })
    assert.deepEqual((await json('/hello/J%C3%BCrgen%2F')).body.data, { hello: 'Jürgen/' })
    assert.equal((await json('/hello')).status, 404)
  })

  test('the metrics example sums up the tool calls of the whole process by method', async () => {
    const { json, post } = heddleOf()
    for (let n = 0; n < 6; n++) await json('/users/nobody')
    // A handler that succeeds and one call that fails: the database refuses a second user of one e-mail.
    const user = { name: 'Ada', email: 'ada@example.com', password: 'correct horse' }
    assert.deepEqual([(await post('/users', user)).status, (await post('/users', user)).status], [201, 409])

    const { status, body } = await json('/system/metrics')
    assert.equal(status, 200)
    assert.equal(body.success, true)
    for (const [call, sum] of Object.entries(body.data as Record<string, Record<string, number>>)) {
      assert.match(call, /^[a-z][a-z0-9_]*\.[a-zA-Z]+$/)
      assert.deepEqual(Object.keys(sum), ['calls', 'errors', 'avg_ms'])
      assert.ok(Number.isInteger(sum.calls) && sum.calls! > 0 && Number.isInteger(sum.errors), call)
      assert.ok(sum.avg_ms! >= 0 && String(sum.avg_ms).length <= sum.avg_ms!.toFixed(2).length, `${call} ${sum.avg_ms}`)
    }
    assert.ok(body.data['db.queryOne'].calls >= 6)
    const { calls, errors } = body.data['db.execute']
    assert.ok(calls >= 2)
    assert.equal(errors, 1)
    assert.ok(body.data['auth.hashPassword'].avg_ms > 1)
  })
})
