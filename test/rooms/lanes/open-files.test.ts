import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fewDescriptors, noFewDescriptors } from '../../support/few-descriptors.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf, lanesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

const LIMIT = 1024

for (const [way, lanes] of [
  ['sync', 1],
  ['callback', 2],
  ['later', 2],
] as const) {
  test(`a plugin that opens files without end (${way}, lanes: ${lanes}) is named, and they are closed with its lane`, {
    skip: noFewDescriptors,
  }, async (t) => {
    const heddle = await startHeddle(t, { domains: NATIVE, lanes, env: fewDescriptors(LIMIT) })
    const { pid } = heddle.process
    const leaking = heddle.fetch(`/open/${way}?files=${2 * LIMIT}`).catch(() => {})
    await until(() => heddle.logs.some(({ msg }) => /^Lane \d died/.test(msg)), 'the lane is ended', 60_000)
    const [box] = await boxesOf(heddle)
    assert.equal(box?.reason, 'descriptors')
    assert.equal(box.guilty?.plugin, 'fatal.EndLane')
    assert.equal(box.guilty.handler, 'GET /open/:way')
    const told = heddle.logs.find(({ msg }) => msg.startsWith('Not ready: '))!.msg
    // On a busy machine a lane answers too late who has opened them: then the report alone names it.
    const byWhom = ', \\d+ of them by files that fatal\\.EndLane has opened in GET /open/:way and not closed'
    assert.match(told, new RegExp(`of 1024 descriptors are used \\(ulimit -n\\)(?:${byWhom})?$`))
    await until(async () => (await heddle.json('/system/health/ready')).status === 200, 'it is ready again', 60_000)
    const used = Number(/(\d+) of 1024/.exec(told)![1])
    assert.ok(used < LIMIT, `${used}: some are left for the thread that takes over`)
    await leaking
    await allUp(heddle)
    if (lanes === 1) {
      const [lane] = await lanesOf(heddle)
      assert.ok(lane!.started_at < box.at, 'another lane serves before the only one goes')
    }
    for (let n = 0; n < 20; n++) {
      const response = await heddle.fetch('/read', { headers: { connection: 'close' } })
      assert.equal(response.status, 200)
      await response.arrayBuffer()
    }
    assert.equal(heddle.process.pid, pid)
    assert.equal(heddle.process.exitCode, null)
  })
}
