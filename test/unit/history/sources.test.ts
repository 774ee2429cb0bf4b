import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pluginPlace, sourceAround } from '#heddle'
import type { Work } from '../../../src/contracts/tracing.ts'
import { Keep } from '../../../src/history/keep.ts'
import { OpenWork } from '../../../src/history/open-work.ts'
import type { HistoryEntry } from '../../../src/history/store.ts'
import { folderOf } from '../../support/folder.ts'

test('the innermost place of a plugin is found in a stack, and the lines around it', async (t) => {
  const text = Array.from({ length: 20 }, (_, n) => `line ${n + 1}`).join('\n')
  const folder = await folderOf(t, { 'my shop/plugins/buy.ts': text })
  const path = join(folder, 'my shop/plugins/buy.ts')
  const runtime = `    at run (${join(folder, '../elsewhere/run.ts')}:1:1)`
  const inPackage = `    at parse (${join(folder, 'node_modules/zod/index.js')}:9:9)`
  for (const frame of [`    at async BuyThing.buy (${path}:12:5)`, `    at file://${path.replace(' ', '%20')}:12:5`]) {
    const place = pluginPlace(['Error: no', runtime, inPackage, frame, `    at ${path}:1:1`], [folder])
    assert.deepEqual(place, { file: path, path, line: 12, column: 5 }, frame)
  }
  const lines = await sourceAround({ file: path, path, line: 2, column: 1 })
  assert.deepEqual(
    lines.map(({ line, text, isFault }) => [line, text, isFault]),
    [1, 2, 3, 4, 5, 6].map((line) => [line, `line ${line}`, line === 2]),
  )
  assert.deepEqual(await sourceAround({ file: 'gone', path: join(folder, 'gone.ts'), line: 1, column: 1 }), [])
  assert.equal(pluginPlace(['Error: no', runtime, inPackage], [folder]), null)
})

test('a place as black boxes show it is found, too', () => {
  const place = pluginPlace(['test/unit/history/a.ts:3:7'], [join(process.cwd(), 'test')])
  assert.deepEqual(place, {
    file: 'test/unit/history/a.ts',
    path: join(process.cwd(), 'test/unit/history/a.ts'),
    line: 3,
    column: 7,
  })
})

/** Records pieces of work that all take no time. */
function recorder(share: number, now = { ms: 1000 }) {
  const written: HistoryEntry[] = []
  const parts = {
    thread: 0,
    keep: new Keep(share),
    payloads: null,
    nowMs: () => now.ms,
    writer: { write: (make: () => HistoryEntry) => void written.push(make()) },
  }
  const run = (work: Work): void => new OpenWork(parts, null, 'shop.TidyOrders/tidy', 'shop.TidyOrders', work).end()
  return { written, run }
}

test('a sample has some runs of a job, each with an id of its own', () => {
  const { written, run } = recorder(0.5)
  for (let n = 0; n < 60; n++) run({ kind: 'job', requestId: null, key: `job_${n}`, eventId: null })
  assert.ok(written.length > 0 && written.length < 60, `${written.length} of 60`)
  const ids = written.map((entry) => entry.type === 'work' && entry.requestId)
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.match(String(id), /^job_/)
})

test('a sample has a run of each job in ten seconds, and every run that somebody asked for', () => {
  const now = { ms: 1000 }
  const { written, run } = recorder(0, now)
  const job = (askedBy: string | null) => run({ kind: 'job', requestId: null, key: 'job_1', eventId: null, askedBy })
  const kept = () => written.splice(0).length
  for (let n = 0; n < 30; n++) job(null)
  assert.equal(kept(), 1)
  job('anna')
  assert.deepEqual(
    written.splice(0).map((entry) => entry.type === 'work' && entry.user),
    ['anna'],
  )
  now.ms += 9_999
  job(null)
  assert.equal(kept(), 0)
  now.ms += 1
  job(null)
  assert.equal(kept(), 1)
})
