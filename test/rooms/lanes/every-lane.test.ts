import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { deathsIn, lanesOf, startDeadly } from './deadly.ts'

/** No lane is ended during the test: whoever serves the others is not there because a loop was stopped. */
const STALL_MS = 300_000
const ASKED_EVERY_MS = 100
const ANSWERS = 20

const KINDS: [kind: string, lanes: readonly number[], ask: (heddle: Heddle) => Promise<unknown>][] = [
  ['a request that loops', [1, 2], (heddle) => heddle.fetch('/harm/spin')],
  ['a request that waits inside of a call', [2], (heddle) => heddle.fetch('/harm/block')],
]

for (const [kind, counts, ask] of KINDS) {
  for (const lanes of counts) {
    test(`${kind}, ten times a second, leaves the others one of ${lanes} lanes`, async (t) => {
      const heddle = await startDeadly(t, { lanes, env: { LANE_STALL_MS: String(STALL_MS) } })
      const timer = setInterval(() => void ask(heddle).catch(() => {}), ASKED_EVERY_MS)
      t.after(() => clearInterval(timer))
      const isIsolated = (): boolean => heddle.logs.some(({ msg }) => /harm.DoHarm blocks lane/.test(msg))
      await until(isIsolated, 'the one that holds them up', 60_000)
      // A standby first has to be up.
      await until(async () => (await heddle.fetch('/peace')).status === 200, 'the first answer', 60_000)
      for (let n = 0; n < ANSWERS; n++) {
        const { status } = await heddle.fetch('/peace')
        assert.equal(status, 200, `answer ${n}`)
        await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS / 2))
      }
      assert.equal(deathsIn(heddle).length, 0, 'all lanes that were held up still are')
      const still = (await lanesOf(heddle)).filter(({ role, responsive }) => role !== 'relief' && !responsive)
      assert.ok(still.length >= (lanes === 1 ? 1 : lanes - 1), JSON.stringify(still))
    })
  }
}
