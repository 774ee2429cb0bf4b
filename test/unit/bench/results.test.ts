import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMet } from '../../../bench/bench-case.ts'
import { rowOf, STREAMS } from '../../../bench/cases/bystander.ts'
import { type Round, type Route, rowsOf } from '../../../bench/cases/overload.ts'
import type { LoadResult, RateResult, StreamResult } from '../../../bench/load/plan.ts'
import { memoryRows } from '../../../bench/peers/memory.ts'
import { NO_LATENCIES, rateResultOf, streamOf } from './rate-results.ts'

const mb = (...values: number[]): number[] => values.map((value) => value * 2 ** 20)

test('a further lane takes half of what four lanes take more than two', () => {
  const rows = memoryRows({
    idleBytes: { 'memory-1': mb(120, 100, 105), 'memory-2': mb(130, 140, 135), 'memory-4': mb(205, 185, 195) },
    loadedBytes: mb(210),
  })
  assert.deepEqual(
    rows.map((row) => [row.heddle, isMet(row)]),
    [
      [105, true],
      [135, true],
      [30, false],
      [210, false],
    ],
  )
})

test('where the runtime was not run, no figure of its memory is told', () => {
  const rows = memoryRows({ idleBytes: {}, loadedBytes: [] })
  assert.deepEqual(
    rows.map((row) => [row.heddle, isMet(row)]),
    [
      [null, null],
      [null, null],
      [null, null],
      [null, null],
    ],
  )
})

const IN_LANE: Route = { label: 'x', path: '/', bottleneck: 'lane', shareMin: 90 }

const AT_READER: Route = { ...IN_LANE, bottleneck: 'reader', shareMin: 75 }

const REFUSED = { ok: 48, statuses: { 503: 52 } }

function roundOf(changes: Partial<StreamResult>, rest: Partial<RateResult> = {}): Round {
  const peak = { ok: 50, okPerSec: 100, non2xx: 0, errors: 0 } as LoadResult
  return { peak, overload: rateResultOf({ streams: [streamOf(changes)], ...rest }) }
}

test('what is served is held against the peak of the same server', () => {
  const round = roundOf({ ...REFUSED, okPerSec: 95, refusedSinceSentMs: { ...NO_LATENCIES, p99: 3 } })
  const refusing = [roundOf({ refusedSinceSentMs: { ...NO_LATENCIES, p99: 1 } }, { serverWaitShare: 0.03 })]
  const rows = rowsOf(IN_LANE, { heddle: [round], fastify: [roundOf({ okPerSec: 60, ok: 30, unsent: 70 })], refusing })
  assert.deepEqual(
    rows.map((row) => [row.heddle, row.baseline, row.faults, isMet(row)]),
    [
      [95, 60, [], true],
      [3, 1, [], true],
      [1, 1, [], true],
    ],
  )
  assert.match(
    rows[1]!.note!,
    /without a core: the thread that answers 2\.0 % of the time, the generator 1\.0 %; beside the bare server the thread that answers 3\.0 %/,
  )
  assert.match(rows[0]!.note!, /heddle: 48 % served, 52 % refused, 0 % not reached.*Fastify: 30 % served.*70 % not/)
})

test('where the reading thread gives out, the share must reach its own minimum and that of Fastify', () => {
  const served = (okPerSec: number) => roundOf({ okPerSec, ok: okPerSec, unsent: 100 - okPerSec })
  const verdicts = (heddle: number, fastify: number) =>
    rowsOf(AT_READER, { heddle: [served(heddle)], fastify: [served(fastify)], refusing: [] })
      .slice(0, 2)
      .map((row) => isMet(row))
  assert.deepEqual(verdicts(80, 78), [true, true])
  assert.deepEqual(verdicts(80, 85), [true, false])
  assert.deepEqual(verdicts(70, 65), [false, true])
})

test('memory that grows from one half of the window to the other does not keep the promise', () => {
  const growing = roundOf(REFUSED, { residentBytes: [1e8, 1e8, 1.2e8, 1.25e8] })
  const memory = rowsOf(IN_LANE, { heddle: [growing], fastify: [], refusing: [] })[2]!
  assert.equal(memory.heddle, 1.25)
  assert.equal(isMet(memory), false)
  assert.match(memory.note!, /at most 125 MB/)
})

test('a lost or unanswered request, another status and a refusal that does not say when void every row', () => {
  const faultsBy = (changes: Partial<StreamResult>, route = IN_LANE) => {
    const rows = rowsOf(route, { heddle: [roundOf(changes)], fastify: [], refusing: [] })
    assert.equal(new Set(rows.map(({ faults }) => faults.join())).size, 1)
    return rows[0]!.faults.join()
  }
  assert.equal(faultsBy(REFUSED), '')
  assert.match(faultsBy({ ...REFUSED, ok: 46, lost: 1, unanswered: 1 }), /1 lost, 1 unanswered/)
  assert.match(faultsBy({ ...REFUSED, ok: 47, unsent: 1 }), /1 of 100 never sent/)
  assert.match(faultsBy({ ok: 47, statuses: { 503: 52, 504: 1 } }), /1 of 100 answered otherwise/)
  assert.match(faultsBy({ ...REFUSED, withoutRetryAfter: 2 }), /2 times 503 without/)
  assert.match(faultsBy({}), /nothing was refused/)
  // Where the reading thread gives out first, what it never read is no fault of its own.
  assert.equal(faultsBy({ ok: 50, unsent: 50 }, AT_READER), '')
})

const SPIN = { label: 'an endless loop', path: '/', windowMs: { heddle: 1, baseline: 1 }, deaths: 2 }

function resultOf(changes: Partial<StreamResult>, deaths: number): RateResult {
  const stream = streamOf({ okMs: { ...NO_LATENCIES, p99: 5, max: 9 }, ...changes })
  return rateResultOf({ streams: STREAMS.map(() => stream), callers: { ok: 0, non2xx: deaths, errors: 0 } })
}

test('what a dying lane owed is counted, and leaves the p99 of the others alone', () => {
  const heddle = [resultOf({ ok: 97, statuses: { 504: 2, 500: 1 } }, 2)]
  const fastify = [resultOf({ ok: 1, unanswered: 99, allMs: { ...NO_LATENCIES, p99: 5000 } }, 0)]
  const row = rowOf(SPIN, 0, { heddle, fastify })
  assert.deepEqual([row.heddle, row.baseline, row.faults, isMet(row)], [5, 5000, [], true])
  assert.match(row.note!, /^3 of 100 in a lane that died/)
  assert.match(row.note!, /slowest other 9 ms.*answered 1 of 100/)
})

test('a bystander that is refused, lost or never answered voids the row', () => {
  const faultsBy = (changes: Partial<StreamResult>) =>
    rowOf(SPIN, 0, { heddle: [resultOf(changes, 2)], fastify: [] }).faults.join()
  assert.match(faultsBy({ ok: 99, statuses: { 503: 1 } }), /1 of 100 refused \(\{"503":1\}\)/)
  assert.match(faultsBy({ ok: 97, lost: 1, unanswered: 1, unsent: 1 }), /1 lost, 1 unanswered, 1 never sent/)
  assert.match(faultsBy({ ok: 0, unanswered: 100 }), /without one good answer/)
})

test('a window in which too few lanes died, or one died that should not, voids the row', () => {
  const sides = (deaths: number) => ({ heddle: [resultOf({}, deaths)], fastify: [] })
  assert.match(rowOf(SPIN, 0, sides(1)).faults.join(), /1 lanes died in a window, not 2/)
  assert.deepEqual(rowOf(SPIN, 0, sides(3)).faults, [])
  assert.match(rowOf({ ...SPIN, deaths: 0 }, 0, sides(1)).faults.join(), /1 lanes died in a window, not 0/)
})
