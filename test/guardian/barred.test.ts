import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { CrashReport } from '../../src/primary/supervision/crash-report.ts'
import { ProcessDeaths } from '../../src/primary/supervision/process-deaths.ts'

const FILE = '/shop/plugins/sell.ts'
const DEATH: CrashReport = {
  at: new Date().toISOString(),
  guardian: process.ppid,
  signal: 'SIGTRAP',
  code: null,
  stalled_ms: null,
  lived_ms: 300,
  had_served: false,
  stderr: [],
  message: 'it died',
  guilty: null,
  lane: null,
  in_flight: [],
  suspects: [],
  booting: [FILE],
  stack: [],
}

test('a plugin is left out that ended the process while it booted, and not one that was killed with it', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-barred-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const barred = (...deaths: Partial<CrashReport>[]): string[] => {
    rmSync(folder, { recursive: true, force: true })
    for (const [n, death] of deaths.entries()) {
      mkdirSync(join(folder, `crash-${n}`), { recursive: true })
      writeFileSync(join(folder, `crash-${n}`, 'report.json'), JSON.stringify({ ...DEATH, ...death }))
    }
    return Object.keys(new ProcessDeaths(folder, () => {}).barred())
  }
  assert.deepEqual(barred({}), [FILE])
  assert.deepEqual(barred({ signal: 'SIGKILL' }, { signal: 'SIGKILL' }), [], 'from outside')
  assert.deepEqual(barred({ signal: 'SIGKILL', stalled_ms: 10_000 }), [FILE], 'by the guardian, because it stood still')
})
