import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf, deathsIn, publish, shareDeadly, startDeadly } from './deadly.ts'
import { GREW, lineOf, MEMORY_ENV, STALL_MS, testWay } from './ended-ways.ts'

describe('in a process that waits long for a lane', () => {
  const heddleOf = shareDeadly({ env: MEMORY_ENV })

  test('a lane that stood still and goes on is named in the log, with the line', async () => {
    const heddle = heddleOf()
    // On a busy machine it may be over before it is looked at.
    const warning = await until(
      async () => {
        assert.equal((await heddle.json('/pause?ms=800')).status, 200)
        return heddle.logs.find(({ msg }) => /stood still for \d+ ms/.test(msg))
      },
      'the warning',
      30_000,
    )
    assert.ok(warning.msg.includes(await lineOf('while (Date.now() < endMs);')), warning.msg)
    assert.equal(deathsIn(heddle).length, 0)
  })

  // Few and large steps: heap and buffers that grow bit by bit are claims.
  testWay(heddleOf, ['copies', 'memory', 500, GREW, 'leak.kept.push(list.concat(list))'])
})

test('what does not end a lane costs one answer', async (t) => {
  const heddle = await startDeadly(t, { lanes: 1, env: { HTTP_HANDLER_TIMEOUT_MS: '300' } })
  assert.equal((await heddle.json('/harm/never')).status, 504, 'a promise that never settles')
  assert.equal((await heddle.json('/harm/kill')).status, 500, 'a signal to its own process')
  assert.ok(heddle.logs.some(({ msg }) => /cannot signal the process/.test(msg)))
  assert.equal(deathsIn(heddle).length, 0)
  assert.equal(await heddle.stop(), 0)
})

test('an event that blocks its lane is named with its subscriber', async (t) => {
  const heddle = await startDeadly(t, { lanes: 1, env: { LANE_STALL_MS: String(STALL_MS) } })
  const id = await publish(heddle, 'harm.asked', { way: 'spin' })
  await until(() => deathsIn(heddle).length > 0, 'the death', 20_000)
  const [box] = await boxesOf(heddle)
  assert.deepEqual(
    box!.in_flight.map(({ kind, name, id }) => [kind, name, id]),
    [['event', 'harm.asked', id]],
  )
  assert.deepEqual([box!.guilty?.plugin, box!.guilty?.handler], ['harm.DoHarm', 'harm.asked'])
  assert.ok(box!.guilty!.line?.startsWith(await lineOf('for (;;) leak.kept.length = 0')))
  assert.ok(box!.steps.some((step) => step.kind === 'event' && step.name === 'harm.DoHarm.onAsked' && step.id === id))
})

test('suspects are tried one at a time', async (t) => {
  const heddle = await startDeadly(t, { lanes: 1 })
  // None ends before the lane is given up. One that turns would finish them.
  const file = join(temporaryFolder(t), 'given up')
  const ids = await Promise.all(Array.from({ length: 6 }, () => publish(heddle, 'peace.asked', { ms: 20, file })))
  const lines = (msg: string) => heddle.logs.filter((line) => line.msg === msg)
  await until(() => lines('peace begins').length === 6, 'all at once')
  await heddle.json('/harm/native')
  await until(() => deathsIn(heddle).length === 1, 'the death')
  writeFileSync(file, '')
  await until(() => lines('peace ends').length === 6, 'all of them', 60_000)
  const story = heddle.logs.filter(({ msg }) => /^peace (?:begins|ends)$/.test(msg)).slice(6)
  assert.deepEqual(
    story.map(({ msg }) => msg),
    ids.flatMap(() => ['peace begins', 'peace ends']),
  )
  assert.equal(deathsIn(heddle).length, 1)
  assert.deepEqual((await heddle.json('/system/dead-letters')).body, [])
  assert.equal(await heddle.stop(), 0)
})

const FRAMELESS = [fixtureDomains('frameless'), SYSTEM_ROUTES]

/** Each ends a thread after the answer, and leaves no frame of the plugin. */
const WAYS = { socket: /ECONNREFUSED/, timer: /a text from a timer/, rejection: /a text that was/, file: /ENOENT/ }

describe('a death that leaves no frame of a plugin', () => {
  const service = shareService((t) => startHeddle(t, { domains: FRAMELESS }))

  for (const [n, [way, message]] of Object.entries(WAYS).entries()) {
    test(`is the handler's that had begun it: ${way}`, async () => {
      const heddle = service()
      assert.equal((await heddle.json(`/fall-apart/${way}`)).status, 200)
      await until(() => deathsIn(heddle).length === n + 1, 'the death')
      const [box] = await boxesOf(heddle)
      assert.match(box!.message, message)
      assert.deepEqual(box!.guilty, {
        plugin: 'blind.FallApart',
        handler: 'GET /fall-apart/:way',
        line: null,
        evidence: 'origin',
      })
      await allUp(heddle)
    })
  }
})
