import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lanes', import.meta.url))]
const LANES = 2

const post = (heddle: Heddle, event: string, payload: object) =>
  heddle
    .json('/publish', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ event, payload }),
    })
    .then(({ body }) => body.id as string)

const deaths = (heddle: Heddle) => heddle.logs.filter(({ msg }) => / died: /.test(msg))

const allUp = (heddle: Heddle) =>
  until(async () => {
    const { body } = await heddle.json('/lanes')
    return body.lanes.every(
      ({ role, state }: { role: string; state: string }) => role === 'quarantine' || state === 'ready',
    )
  }, 'both lanes')

/** A new lane gets nothing while its loop stands still, as it may on a busy machine. */
const bothServe = (heddle: Heddle) =>
  until(
    async () => {
      const answers = await Promise.all(Array.from({ length: LANES * 2 }, () => heddle.json('/slow?ms=50')))
      return new Set(answers.map(({ body }) => body.thread)).size === LANES
    },
    'both lanes serve',
    30_000,
  )

test('a lane that dies', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES, env: { LANE_STALL_MS: '1000' } })
  await bothServe(heddle)

  const causes = [
    ['throw', 'an exception of a timer', 500, /thrown by a timer/],
    ['reject', 'a rejection that nobody handles', 500, /rejected by nobody/],
    ['exit', 'process.exit', 500, /exit/],
    ['spin', 'an endless loop', 504, /stood still for \d{4,5} ms/],
  ] as const
  for (const [how, what, status, reason] of causes) {
    await t.test(`by ${what}: its requests are answered ${status}, and a new one takes over`, async () => {
      const before = deaths(heddle).length
      // In the other lane, or in the dying one: then it shares its fate.
      const slow = Array.from({ length: 6 }, () => heddle.json('/slow?ms=2000'))
      await until(async () => {
        const { body } = await heddle.json('/lanes')
        const regular = (body.lanes as LaneInfo[]).filter(({ role }) => role === 'regular')
        const works = regular.map(({ requests_in_flight }) => requests_in_flight)
        // The one that asks is in flight itself.
        if (works.every((count) => count > 1)) return true
        // A lane that was late for a moment got none of them: on a busy machine that happens.
        if (slow.length < 60) slow.push(heddle.json('/slow?ms=2000'))
        return false
      }, 'both lanes are at work')
      const answers = await Promise.all([heddle.json(`/die/${how}`), ...slow])
      assert.equal(answers[0].status, status)
      assert.equal(answers[0].body.success, false)
      assert.ok(
        answers.slice(1).some((answer) => answer.status === 200),
        'the other lane goes on',
      )
      await until(() => deaths(heddle).length === before + 1, 'the report')
      const death = deaths(heddle).at(-1)!
      assert.match(death.msg, reason)
      assert.ok((death.in_flight as { name: string }[]).some(({ name }) => name === 'GET /die/:how'))
      await allUp(heddle)
      const { body } = await heddle.json('/lanes')
      const dead = body.lanes.find(({ deaths }: { deaths: { message: string }[] }) =>
        deaths.some(({ message }) => reason.test(message)),
      )
      assert.ok(dead.restarts >= 1)
      await bothServe(heddle)
    })
  }

  assert.equal(await heddle.stop(), 0)
})

const begun = (heddle: Heddle) => heddle.logs.filter(({ msg }) => msg === 'work begins')
const ended = (heddle: Heddle) =>
  new Set(heddle.logs.filter(({ msg }) => msg === 'work ends').map(({ event }) => event))

test('a lane that dies finishes its events, and none is begun twice', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES })
  const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => post(heddle, 'work', { n, ms: 400 })))
  await until(() => begun(heddle).length === 20, 'all begun')
  await heddle.json('/die/exit')
  await until(() => ended(heddle).size === 20, 'all ended', 30_000)
  for (const id of ids) assert.ok(ended(heddle).has(id))
  assert.equal(begun(heddle).length, 20)
  assert.equal(await heddle.stop(), 0)
})

test('a lane that dies hands events on that it does not finish in time', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  const id = await post(heddle, 'work', { n: 1, ms: 7000 })
  await until(() => begun(heddle).length === 1, 'begun')
  await heddle.json('/die/exit')
  await until(() => begun(heddle).length === 2, 'begun again', 30_000)
  await until(() => ended(heddle).size === 1, 'ended', 30_000)
  assert.ok(ended(heddle).has(id))
  assert.equal(await heddle.stop(), 0)
})

test('an event that was there at three deaths is put aside, and the lanes live on', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES })
  const id = await post(heddle, 'poison', {})
  await until(() => deaths(heddle).length === 3, 'three deaths', 20_000)
  await until(async () => (await heddle.json('/thread')).status === 200, 'a lane')
  await allUp(heddle)
  await post(heddle, 'work', { n: 1, ms: 1 })
  await until(() => heddle.logs.some(({ msg }) => msg === 'work ends'), 'another event')
  const poisoned = heddle.logs.filter(({ msg }) => msg === 'poisoned')
  assert.deepEqual(
    poisoned.map(({ event }) => event),
    [id, id, id],
  )
  assert.equal(deaths(heddle).length, 3)
  assert.equal(await heddle.stop(), 0)
})
