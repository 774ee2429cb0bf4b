import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChaosArguments } from '../chaos/arguments.ts'
import { runChaos } from '../chaos/chaos.ts'
import { formatReport, isPassed } from '../chaos/report.ts'

/** Its first kills are an abort of V8 and the end of everything at once. */
const SEED = 22

test('a process that V8 aborts, and one that is gone with its guardian, lose nothing', async (t) => {
  const options: ChaosArguments = {
    killProcess: true,
    kills: 2,
    log: 'sqlite',
    seconds: 3600,
    seed: SEED,
    lanes: 1,
    gap: 8,
    json: null,
  }
  const report = await runChaos(options, t)
  const text = formatReport(report)
  assert.deepEqual(report.struck.map(({ kind }) => kind).sort(), ['abort', 'plug'], text)
  assert.ok(isPassed(report), text)
  assert.ok(report.verdict.rows > 0 && report.verdict.acknowledged > 0, text)
})
