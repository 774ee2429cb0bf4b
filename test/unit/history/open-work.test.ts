import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Work } from '../../../src/contracts/tracing.ts'
import { Keep } from '../../../src/history/keep.ts'
import { OpenWork } from '../../../src/history/open-work.ts'
import type { HistoryEntry } from '../../../src/history/store.ts'

/** Records pieces of work that all take no time. */
function recorder(share: number) {
  const written: HistoryEntry[] = []
  const parts = {
    thread: 0,
    keep: new Keep(share),
    payloads: null,
    nowMs: () => 1000,
    writer: { write: (make: () => HistoryEntry) => void written.push(make()) },
  }
  const run = (work: Work): void => new OpenWork(parts, null, 'shop.TidyOrders/tidy', 'shop.TidyOrders', work).end()
  return { written, run }
}

test('a sample has some runs of a job, each with an id of its own', () => {
  const { written, run } = recorder(0.5)
  for (let n = 0; n < 60; n++) run({ kind: 'job', requestId: null, eventId: null })
  assert.ok(written.length > 0 && written.length < 60, `${written.length} of 60`)
  const ids = written.map((entry) => entry.type === 'work' && entry.requestId)
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.match(String(id), /^job_/)
})
