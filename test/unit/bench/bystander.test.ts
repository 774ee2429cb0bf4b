import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMet } from '../../../bench/bench-case.ts'
import { rowOf, STREAMS } from '../../../bench/cases/bystander.ts'
import type { RateResult, StreamResult } from '../../../bench/load/plan.ts'
import { NO_LATENCIES, rateResultOf, streamOf } from './rate-results.ts'

const SPIN = { label: 'an endless loop', path: '/', windowMs: { heddle: 1, baseline: 1 }, deaths: 2 }

function resultOf(changes: Partial<StreamResult>, deaths: number): RateResult {
  const stream = streamOf({ okMs: { ...NO_LATENCIES, p99: 5, max: 9 }, ...changes })
  return rateResultOf({ streams: STREAMS.map(() => stream), callers: { ok: 0, non2xx: deaths, errors: 0 } })
}

test('what a dying lane owed is counted, and leaves the p99 of the others alone', () => {
  const heddle = [resultOf({ ok: 97, statuses: { 504: 2, 500: 1 } }, 2)]
  const baseline = [resultOf({ ok: 1, unanswered: 99, allMs: { ...NO_LATENCIES, p99: 5000 } }, 0)]
  const row = rowOf(SPIN, 0, { heddle, baseline })
  assert.deepEqual([row.heddle, row.baseline, row.faults, isMet(row)], [5, 5000, [], true])
  assert.match(row.note!, /^3 of 100 in a lane that died/)
  assert.match(row.note!, /slowest other 9 ms.*answered 1 of 100/)
})

test('a bystander that is refused, lost or never answered voids the row', () => {
  const faultsBy = (changes: Partial<StreamResult>) =>
    rowOf(SPIN, 0, { heddle: [resultOf(changes, 2)], baseline: [] }).faults.join()
  assert.match(faultsBy({ ok: 99, statuses: { 503: 1 } }), /1 of 100 refused \(\{"503":1\}\)/)
  assert.match(faultsBy({ ok: 97, lost: 1, unanswered: 1, unsent: 1 }), /1 lost, 1 unanswered, 1 never sent/)
  assert.match(faultsBy({ ok: 0, unanswered: 100 }), /without one good answer/)
})

test('a window in which too few lanes died, or one died that should not, voids the row', () => {
  const sides = (deaths: number) => ({ heddle: [resultOf({}, deaths)], baseline: [] })
  assert.match(rowOf(SPIN, 0, sides(1)).faults.join(), /1 lanes died in a window, not 2/)
  assert.deepEqual(rowOf(SPIN, 0, sides(3)).faults, [])
  assert.match(rowOf({ ...SPIN, deaths: 0 }, 0, sides(1)).faults.join(), /1 lanes died in a window, not 0/)
})
