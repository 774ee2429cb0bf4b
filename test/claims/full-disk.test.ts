import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { BUSY, folders, post, readiness, start, untilNot, untilReady } from '../rooms/db/write-faults.ts'
import { fullDiskOf } from '../support/power/disk.ts'
import { until } from '../support/until.ts'

test('on a full disk writes are 503, readiness says so, rows can be deleted, and room brings everything back', async (t) => {
  const { work, data, path } = await folders(t)
  const disk = await fullDiskOf(data, work)
  const heddle = await start(t, path, disk.env)
  await untilReady(heddle)
  for (let n = 0; n < 30; n++) assert.equal((await post(heddle, `old-${n}`, 'x'.repeat(100_000))).status, 201)
  await until(() => existsSync(`${path}-reserve`), 'room is kept')
  await disk.fill()
  const refused = await until(async () => {
    const answer = await post(heddle, crypto.randomUUID(), 'x'.repeat(100_000))
    return answer.status === 201 ? null : answer
  }, 'a write is refused')
  assert.deepEqual(refused, BUSY)
  await untilNot(heddle, /the disk is full/)
  for (let n = 0; n < 30; n++) {
    const { status, body } = await heddle.json(`/rows/old-${n}`, { method: 'DELETE' })
    assert.deepEqual([status, body.data], [200, { rowCount: 1 }], `old-${n}`)
  }
  assert.equal((await readiness(heddle)).status, 503)
  await disk.empty()
  await untilReady(heddle)
  assert.equal((await post(heddle, 'new')).status, 201)
})
