import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { WorkInFlight } from '../../../src/contracts/registry.ts'
import type { CrashReport } from '../../../src/primary/supervision/crash-report.ts'
import { ProcessDeaths } from '../../../src/primary/supervision/process-deaths.ts'
import { temporaryFolder } from '../../support/folder.ts'

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

/** A request that was in flight. */
const working = (name: string): WorkInFlight => ({
  kind: 'request',
  name,
  plugin: `shop.${name.slice('GET /'.length)}`,
  id: null,
  for_ms: 1,
})

test('a plugin is left out that ended the process while it booted, and not one that was killed with it', (t) => {
  const folder = temporaryFolder(t)
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

  const [request, other] = ['GET /abort', 'GET /slow'].map((name) => working(name))
  const named: Partial<CrashReport> = {
    guilty: { plugin: request!.plugin, handler: request!.name, line: null, evidence: 'alone' },
    suspects: [request!.plugin],
    in_flight: [request!],
  }
  assert.deepEqual(barred(named), [], 'a request has ended it in another lane')
  const inFlight = (...works: WorkInFlight[]): Partial<CrashReport> => ({
    guilty: null,
    suspects: works.map(({ plugin }) => plugin),
    in_flight: works,
  })
  assert.deepEqual(barred(inFlight(request!)), [], 'perhaps of a request')
  assert.deepEqual(barred(inFlight(request!), inFlight(request!)), [], 'the same one each time')
  assert.deepEqual(barred(inFlight(request!), inFlight(other!)), [FILE], 'it alone was there both times')
  const streaming = { in_flight: [working('GET /feed')] }
  assert.deepEqual(barred(streaming), [FILE], 'a stream is under no suspicion')
  const pair = { booting: [FILE, '/shop/plugins/buy.ts'] }
  assert.deepEqual(barred(pair), [], 'nothing tells them apart')
  assert.deepEqual(barred(pair, { booting: [FILE, '/shop/plugins/pay.ts'] }), [FILE])
})

test('a death counts against an event for the plugin that was at work on it, and not from before its letter was replayed', (t) => {
  const folder = temporaryFolder(t)
  const atMs = Date.now() - 60_000
  const work: WorkInFlight = { kind: 'event', name: 'order.placed', plugin: 'shop.Send', id: 'evt_1', for_ms: 1 }
  mkdirSync(join(folder, 'crash-0'), { recursive: true })
  const report = { ...DEATH, at: new Date(atMs).toISOString(), in_flight: [work] }
  writeFileSync(join(folder, 'crash-0', 'report.json'), JSON.stringify(report))
  const deaths = new ProcessDeaths(folder, () => {})
  assert.equal(deaths.ofEvent('evt_1', 'shop.Send', 0), 1)
  assert.equal(deaths.ofEvent('evt_1', 'shop.Count', 0), 0)
  assert.equal(deaths.ofEvent('evt_1', 'shop.Send', atMs + 1), 0)
})
