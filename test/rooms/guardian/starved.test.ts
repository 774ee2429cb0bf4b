/** Holds that the guardian ends a runtime that is stuck, and none that only waits for a core. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tasksOf } from '../../../src/core/schedule/thread-clock.cjs'
import { starved } from '../../support/starve.ts'
import { until } from '../../support/until.ts'
import { guardFake } from './fake-guarded.ts'

const OPTIONS = { skip: tasksOf('self') === null && 'the system does not report on threads' }
/** What a fake runtime says as its limit. */
const STALL_MS = 2000
const SHARE = 0.1

test('a runtime that computes for less than its limit and gets a tenth of a core is not ended', OPTIONS, async (t) => {
  const hunger = starved(t, SHARE)
  t.diagnostic(`it starves by ${hunger.by}`)
  const startedMs = performance.now()
  const { child, errors } = await guardFake(t, 'toil')
  hunger.add(child)
  let output = ''
  child.stdout!.on('data', (chunk) => {
    output += chunk
  })
  await until(() => output !== '' || errors() !== '', 'it is done', 60_000)
  const tookMs = performance.now() - startedMs
  assert.equal(errors(), '')
  assert.ok(
    hunger.by === 'neighbours' || tookMs > 1.5 * STALL_MS,
    `it took ${Math.round(tookMs)} ms: it did not starve`,
  )
})

for (const way of ['loop', 'hang']) {
  test(`a runtime that is stuck (${way}) is ended though it starves`, OPTIONS, async (t) => {
    const hunger = starved(t, 0.5)
    const { child, errors } = await guardFake(t, way)
    hunger.add(child)
    await until(() => errors().includes('SIGKILL ends it'), 'its end', 60_000)
    assert.match(errors(), /has stood still for [23]\d{3} ms: SIGKILL ends it/)
  })
}
