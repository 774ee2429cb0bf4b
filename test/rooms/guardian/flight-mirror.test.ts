import assert from 'node:assert/strict'
import { linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { Piscina } from 'piscina'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import { FlightMirror, NAMES_FILE } from '../../../src/primary/flight/flight-mirror.ts'
import type { Routing } from '../../../src/primary/http/routes.ts'
import { readCrashReports } from '../../../src/primary/supervision/crash-report.ts'
import { FlightRecorder, STEP_JOB } from '../../../src/transport/memory/flight-recorder.ts'
import { laneOf } from '../../support/fake-lane.ts'
import { folderOf } from '../../support/folder.ts'
import type { Task } from './begin-steps.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what a lane has begun stays in its file, whenever the primary renews that', async (t) => {
  const mirror = new FlightMirror(await folderOf(t, {}))
  const lane = laneOf(t)
  const memory = lane.threadSide.flight
  const path = mirror.begin(lane, memory)
  const pool = new Piscina<Task, number[]>({
    filename: new URL('./begin-steps.ts', import.meta.url).href,
    maxThreads: 1,
    atomics: 'disabled',
  })
  t.after(() => pool.destroy())
  let lost: number[] | undefined
  const ended = pool.run({ memory, path, steps: 10_000 }).then((result) => {
    lost = result
  })
  while (lost === undefined) {
    for (let looks = 0; looks < 500; looks++) mirror.beginLook()
    await turn()
  }
  await ended
  assert.deepEqual(lost, [])
})

test('a process that dies while it writes the names leaves the names that were there before', async (t) => {
  const folder = await folderOf(t, {})
  const mirror = new FlightMirror(folder)
  const routing = { table: { list: () => [] } } as unknown as Routing
  const names = join(folder, NAMES_FILE)
  const name = async (file: string): Promise<void> => {
    mirror.nameSoon(() => [], routing, { [basename(file)]: file })
    await turn()
    await turn()
  }
  await name('/first')
  const before = readFileSync(names, 'utf8')
  // Another name of the same file: it is never cut off, but replaced as a whole.
  const kept = join(folder, 'kept')
  linkSync(names, kept)
  await name('/second')
  assert.equal(readFileSync(kept, 'utf8'), before)
  assert.deepEqual(JSON.parse(readFileSync(names, 'utf8')).files, { second: '/second' })
})

test('a process that dies of the end of a lane blames who has brought that lane to its end', async (t) => {
  const folder = await folderOf(t, {})
  const crash = join(folder, 'crash-1')
  mkdirSync(crash)
  const mirror = new FlightMirror(crash)
  const lane = laneOf(t, {
    manifest: { files: { 'login.LogIn': '/login.ts' }, jobs: [{ name: 'hash', plugin: 'login.LogIn' } as never] },
  })
  const memory = lane.threadSide.flight
  mirror.begin(lane, memory)
  new FlightRecorder(memory).begin(STEP_JOB, 0, -1, '', Date.now())
  mirror.nameSoon(() => [lane], { table: { list: () => [] } } as unknown as Routing, {})
  for (let n = 0; n < 2; n++) await turn()
  for (let n = 0; n < 10; n++) mirror.beginLook()
  const reportOf = (atMs: number) => {
    const raw = { guardian: process.ppid, signal: 'SIGABRT', code: null, stalled_ms: null, stderr: [], lived_ms: 1 }
    writeFileSync(join(crash, 'report.json'), JSON.stringify({ ...raw, at: new Date(atMs).toISOString() }))
    return readCrashReports(folder).unread[0]!
  }
  const hashing = reportOf(Date.now())
  assert.deepEqual(
    [hashing.guilty?.plugin, hashing.suspects],
    ['login.LogIn', ['login.LogIn']],
    'nothing else is known',
  )
  const guilty = { plugin: 'loops.Loop', handler: 'GET /loop', line: 'loop.ts:1:1', evidence: 'stack' } as const
  mirror.noteForcedTermination(lane, { message: 'its loop stood still', guilty } as BlackBox)
  const ended = reportOf(Date.now() + 500)
  assert.deepEqual([ended.guilty, ended.suspects, ended.lane], [guilty, ['loops.Loop'], lane.index])
  assert.match(ended.message, /SIGABRT, when a lane was ended that did not leave, for its loop stood still$/)
  assert.equal(ended.in_flight[0]!.plugin, 'login.LogIn')
  assert.deepEqual(reportOf(Date.now() + 60_000).suspects, ['login.LogIn'], 'that lane was gone long before')
  // A lane that was to be replaced by new code: nobody has brought it to its end.
  mirror.noteForcedTermination(lane, null)
  assert.deepEqual(reportOf(Date.now()).suspects, [])
})
