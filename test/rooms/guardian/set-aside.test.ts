import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readCrashReports } from '../../../src/primary/supervision/crash-report.ts'
import { DISABLED_MS, disabledBy } from '../../../src/primary/supervision/process-deaths.ts'
import {
  createFlightRecorder,
  FlightFile,
  FlightRecorder,
  STEP_CALL,
  STEP_REQUEST,
} from '../../../src/transport/memory/flight-recorder.ts'
import { temporaryFolder } from '../../support/folder.ts'

const MINUTE_MS = 60_000
const NOW_MS = Date.parse('2026-01-01T12:00:00Z')
const guiltyOf = (plugin: string) => ({ plugin, handler: null, line: null, evidence: 'alone' as const })
/** Where there are several suspects, nothing proves which of them it was. */
const died = (minutesAgo: number, ...suspects: string[]) => ({
  at: new Date(NOW_MS - minutesAgo * MINUTE_MS).toISOString(),
  guilty: suspects.length === 1 ? guiltyOf(suspects[0]!) : null,
  suspects,
  message: 'it died',
})
const plugins = (...reports: ReturnType<typeof died>[]): string[] =>
  disabledBy(reports, NOW_MS).map(({ plugin }) => plugin)

test('a plugin is disabled that is proved to have ended three processes', () => {
  assert.deepEqual(plugins(died(2, 'bad'), died(1, 'bad')), [])
  assert.deepEqual(plugins(died(2, 'bad'), died(1, 'bad'), died(0, 'bad')), ['bad'])
  assert.deepEqual(plugins(died(2, 'bad', 'good'), died(1, 'bad'), died(0, 'bad')), [], 'one of them has no proof')
  assert.deepEqual(plugins(died(3, 'bad'), died(2, 'good'), died(1, 'bad'), died(0, 'bad')), ['bad'])
  const killed = { ...died(1), guilty: guiltyOf('bad') }
  assert.deepEqual(plugins(died(2, 'bad'), killed, died(0, 'bad')), [], 'somebody has killed one of them')
  assert.deepEqual(plugins(died(40, 'bad'), died(20, 'bad'), died(0, 'bad')), [], 'they lie too far apart')
})

test('each further death doubles the time, counted from the last', () => {
  const [three] = disabledBy([died(2, 'bad'), died(1, 'bad'), died(0, 'bad')], NOW_MS)
  assert.deepEqual({ deaths: three!.deaths, forMs: three!.untilMs - NOW_MS }, { deaths: 3, forMs: DISABLED_MS })
  const [five] = disabledBy(
    [5, 4, 3, 2, 0].map((minutes) => died(minutes, 'bad')),
    NOW_MS,
  )
  assert.equal(five!.untilMs - NOW_MS, 4 * DISABLED_MS)
  assert.deepEqual(plugins(died(4, 'bad'), died(3, 'bad'), died(2, 'bad')), [], 'its time is over: it is tried again')
})

/** A folder with one report, as the guardian leaves it. */
function crashFolder(t: TestContext, files: Record<string, string>): { folder: string; crash: string } {
  const folder = temporaryFolder(t)
  const crash = join(folder, 'crash-2026-01-01T12-00-00.000Z')
  mkdirSync(crash)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(crash, name), text)
  return { folder, crash }
}

const REPORT = JSON.stringify({
  at: new Date(NOW_MS).toISOString(),
  guardian: process.pid,
  signal: 'SIGSEGV',
  code: null,
  stalled_ms: null,
  lived_ms: 1000,
  had_served: true,
  stderr: [],
})
const NAMES = JSON.stringify({
  routes: {
    1: { name: 'GET /slow', plugin: 'a.Slow', isStream: false },
    2: { name: 'GET /feed', plugin: 'a.Feed', isStream: true },
  },
  lanes: { 'lane-0-0.flight': { index: 0, subscriptions: {}, jobs: [] } },
  files: {},
})

test('a report names whose work was in flight alone; a stream is never guilty; it is read once', (t) => {
  const { folder, crash } = crashFolder(t, { 'report.json': REPORT, 'names.json': NAMES })
  const memory = createFlightRecorder()
  const file = new FlightFile(join(crash, 'lane-0-0.flight'), Buffer.from(memory))
  const recorder = new FlightRecorder(memory, file)
  const begin = (route: number, id: string, atMs: number): number => recorder.begin(STEP_REQUEST, route, -1, id, atMs)
  recorder.end(begin(1, 'answered', NOW_MS - 900), NOW_MS - 800, false)
  begin(1, 'stuck', NOW_MS - 500)
  begin(2, 'feed', NOW_MS - 100)
  recorder.begin(STEP_CALL, 7, -1, '', NOW_MS - 50)
  file.close()

  const { unread, reports } = readCrashReports(folder, process.pid)
  assert.equal(reports.length, 1)
  const [report] = unread
  assert.deepEqual(report!.in_flight, [
    { kind: 'request', name: 'GET /slow', plugin: 'a.Slow', id: 'stuck', for_ms: 500 },
    { kind: 'request', name: 'GET /feed', plugin: 'a.Feed', id: 'feed', for_ms: 100 },
  ])
  assert.deepEqual(report!.guilty, { plugin: 'a.Slow', handler: 'GET /slow', line: null, evidence: 'alone' })
  assert.deepEqual(report!.suspects, ['a.Slow'])
  assert.equal(JSON.parse(readFileSync(join(crash, 'report.json'), 'utf8')).message, 'the process died of SIGSEGV')
  assert.deepEqual(readCrashReports(folder, process.pid).unread, [])
  assert.equal(readCrashReports(folder, process.pid).reports.length, 1)
})

test('a report without names, with a flight file that is cut off, and one that is no JSON are no fault', (t) => {
  const { folder, crash } = crashFolder(t, { 'report.json': REPORT, 'lane-0-0.flight': 'x'.repeat(100) })
  assert.deepEqual(readCrashReports(folder, process.pid).unread[0]!.in_flight, [])
  truncateSync(join(crash, 'report.json'), 10)
  assert.deepEqual(readCrashReports(folder), { reports: [], unread: [] })
  assert.deepEqual(readCrashReports(join(folder, 'none')), { reports: [], unread: [] })
})

test('a process reads the reports of its own guardian, and of guardians that are gone', (t) => {
  const { folder, crash } = crashFolder(t, { 'report.json': REPORT })
  assert.deepEqual(
    readCrashReports(folder, process.ppid).reports,
    [],
    'the one of a guardian that lives belongs to its runtime',
  )
  const gone = spawnSync(process.execPath, ['--version']).pid
  writeFileSync(join(crash, 'report.json'), REPORT.replace(String(process.pid), String(gone)))
  assert.equal(readCrashReports(folder, process.ppid).reports.length, 1)
})
