import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lanes', import.meta.url))]
const STALL_MS = 200

test('a process that was stopped and goes on does not take its lanes for stalled', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS) } })
  for (let round = 0; round < 5; round++) {
    heddle.process.kill('SIGSTOP')
    // Time itself is what is tested here.
    await new Promise((resolve) => setTimeout(resolve, STALL_MS * 2))
    heddle.process.kill('SIGCONT')
    const { status } = await heddle.json('/slow?ms=100')
    assert.equal(status, 200)
  }
  assert.deepEqual(
    heddle.logs.filter(({ msg }) => / died: /.test(msg)),
    [],
  )
})
