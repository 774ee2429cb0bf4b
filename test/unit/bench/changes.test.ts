import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Row } from '../../../bench/bench-case.ts'
import { laneModel, modelPerSec } from '../../../bench/cases/lanes.ts'
import { formatChanges, readRun } from '../../../bench/report.ts'
import { folderOf } from '../../support/folder.ts'

const ROW: Row = {
  label: 'hello: CPU',
  unit: 'µs',
  heddle: 15,
  baseline: 20,
  baselineName: 'Fastify',
  ratio: 0.75,
  target: null,
  faults: [],
}
const ALONE: Row = { ...ROW, label: 'boot', unit: 'ms', heddle: 400, baseline: null, baselineName: null, ratio: null }

const cellsOf = (table: string): string[][] =>
  table
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )

test('ratios are compared where both runs have one, figures elsewhere, and each with its own baseline', () => {
  const uws = { ...ROW, baselineName: 'uws', ratio: 1.5 }
  const before = [ROW, uws, ALONE, { ...ALONE, label: 'gone' }]
  const now = [
    { ...ROW, ratio: 0.6 },
    { ...uws, ratio: 1.8 },
    { ...ALONE, heddle: 500 },
    { ...ALONE, label: 'first' },
  ]
  assert.deepEqual(cellsOf(formatChanges(before, now)), [
    ['hello: CPU', 'Fastify', '0.750 ×', '0.600 ×', '−20 %'],
    ['hello: CPU', 'uws', '1.50 ×', '1.80 ×', '+20 %'],
    ['boot', '–', '400 ms', '500 ms', '+25 %'],
    ['first', '–', '–', '400 ms', 'new'],
    ['gone', '–', '400 ms', '–', 'not run'],
  ])
})

test('what is no file of results is refused with its path', async (t) => {
  const folder = await folderOf(t, { 'other.json': '{}' })
  assert.throws(() => readRun(join(folder, 'none.json')), /--compare: .*none\.json cannot be read: ENOENT/)
  assert.throws(() => readRun(join(folder, 'other.json')), /other\.json is no file of results/)
  const path = join(folder, 'run.json')
  writeFileSync(path, JSON.stringify({ startedAt: '', machine: { cpu: 'a', node: 'b' }, rows: [ROW] }))
  assert.deepEqual(readRun(path).rows, [ROW])
})

test('the primary, the lanes or the cores limit what the model allows', () => {
  const model = laneModel(10, 40)
  assert.deepEqual(model, { primaryUs: 10, laneUs: 30, lanesAtLimit: 3 })
  const perSec = (lanes: number, cores: number) => Math.round(modelPerSec(model, lanes, cores))
  assert.deepEqual([perSec(1, 8), perSec(2, 8), perSec(4, 8), perSec(4, 2)], [33_333, 66_667, 100_000, 50_000])
})
