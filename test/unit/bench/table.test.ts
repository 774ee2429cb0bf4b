import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMet, type Row, type Target } from '../../../bench/bench-case.ts'
import { medianOf, medianRatio } from '../../../bench/comparison.ts'
import type { LoadResult } from '../../../bench/load/plan.ts'
import { formatTable, median } from '../../../bench/report.ts'

const ROW: Row = {
  label: 'hello: CPU per request',
  unit: 'µs',
  heddle: 15.04,
  baseline: 20,
  baselineName: 'Fastify',
  ratio: 0.752,
  target: { of: 'ratio', sense: 'at most', value: 0.8, unit: '×' },
  faults: [],
}

test('the table shows figures, ratio, target and whether it is met, in aligned columns', () => {
  const lines = formatTable([
    ROW,
    { ...ROW, label: 'short', ratio: 0.91, note: 'half of it idle' },
    { ...ROW, heddle: null, ratio: null },
    { ...ROW, faults: ['heddle: 3 connection errors'] },
    {
      ...ROW,
      label: 'events',
      unit: 'events/s',
      heddle: 151_234.5,
      baseline: null,
      baselineName: null,
      ratio: null,
      target: { of: 'figure', sense: 'at least', value: 150_000, unit: 'events/s' },
    },
  ]).split('\n')
  assert.equal(new Set(lines.slice(0, 7).map((line) => line.length)).size, 1)
  const cells = lines.slice(0, 7).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  assert.deepEqual(cells[0], ['case', 'heddle', 'baseline', 'ratio', 'target', 'met?'])
  assert.deepEqual(cells[2], [
    'hello: CPU per request',
    '15.0 µs',
    '20.0 µs (Fastify)',
    '0.75 ×',
    'at most 0.80 ×',
    'yes',
  ])
  assert.equal(cells[3]![5], 'below target')
  assert.equal(cells[4]![5], 'not measured')
  assert.equal(cells[5]![5], 'void, see below')
  assert.deepEqual(cells[6]!.slice(1), ['151,235 events/s', '–', '–', 'at least 150,000 events/s', 'yes'])
  assert.deepEqual(lines.slice(7), [
    '  short: half of it idle',
    '! hello: CPU per request: heddle: 3 connection errors',
  ])
})

test('a promise is kept at its limit, and "under" is not', () => {
  const figure = (sense: Target['sense'], heddle: number) =>
    isMet({ ...ROW, heddle, target: { of: 'figure', sense, value: 180, unit: 'MB' } })
  assert.deepEqual([figure('at most', 180), figure('at most', 180.1)], [true, false])
  assert.deepEqual([figure('at least', 180), figure('at least', 179.9)], [true, false])
  assert.deepEqual([figure('under', 179.9), figure('under', 180)], [true, false])
})

test('a figure without a target is told, and is void when something failed', () => {
  const told = { ...ROW, target: null }
  assert.equal(isMet(told), null)
  const lines = formatTable([told, { ...told, faults: ['x'] }, { ...told, heddle: null }]).split('\n')
  assert.deepEqual(
    lines.slice(2, 5).map((line) =>
      line
        .split('|')
        .slice(-3, -1)
        .map((cell) => cell.trim()),
    ),
    [
      ['–', '–'],
      ['–', 'void, see below'],
      ['–', 'not measured'],
    ],
  )
})

test('a figure with faults keeps no promise', () => {
  assert.equal(isMet({ ...ROW, faults: ['x'] }), false)
})

test('ratios are taken within a round before the median is taken', () => {
  const result = (okPerSec: number) => ({ okPerSec }) as LoadResult
  const rounds = { a: [10, 40, 90].map(result), b: [10, 20, 100].map(result) }
  const rate = ({ okPerSec }: LoadResult) => okPerSec
  assert.equal(medianRatio(rounds, 'a', 'b', rate), 1)
  assert.equal(medianOf(rounds, 'a', rate), 40)
  assert.equal(medianRatio({ b: rounds.b }, 'a', 'b', rate), null)
  assert.equal(median([3, 1, 2, 10]), 2.5)
})
