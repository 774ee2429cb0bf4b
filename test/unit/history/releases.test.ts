import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RequestSummary } from '#heddle'
import { Questions } from '../../../src/history/questions.ts'
import { DEAD_MS, FAILURE_KINDS_MAX, type HistoryEntry, HistoryStore } from '../../../src/history/store.ts'
import { temporaryFolder } from '../../support/folder.ts'

const request = (id: string, more: object = {}): HistoryEntry => ({
  type: 'request',
  id,
  clientId: null,
  atMs: Date.now(),
  method: 'GET',
  path: '/a',
  route: '/a',
  plugin: 'a.A',
  ms: 4,
  status: 500,
  lane: 0,
  ...more,
})

/** One file, and starts of a process whose time is later each time. */
function historyOf(t: TestContext) {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const historyPath = join(temporaryFolder(t), 'h.db')
  let last: HistoryStore | null = null
  return {
    start(heddleRelease: string | undefined, replicaId = 'r', isAlone = true): HistoryStore {
      t.mock.timers.tick(1000)
      if (isAlone) last?.close()
      const store = new HistoryStore({ historyPath, historyMaxMb: 10, historyHours: 1, replicaId, heddleRelease })
      t.after(() => store.close())
      last = store
      return store
    },
  }
}

const rowsOf = (store: HistoryStore): Record<string, Pick<RequestSummary, 'release' | 'began_with' | 'replica'>> => {
  const rows = new Questions(store.database).answer({ kind: 'list', filter: {} }) as RequestSummary[]
  return Object.fromEntries(rows.map(({ id, release, began_with, replica }) => [id, { release, began_with, replica }]))
}

test('each request has the release that served it, also after the process was replaced by one of its name', (t) => {
  const history = historyOf(t)
  history.start('one').write([request('req_1')])
  const second = history.start('two')
  second.write([request('req_2', { status: 200 })])
  t.mock.timers.tick(40_000)
  second.write([])
  assert.deepEqual(rowsOf(second), {
    req_1: { release: 'one', began_with: null, replica: 'r' },
    req_2: { release: 'two', began_with: null, replica: 'r' },
  })
})

test('a failure that an earlier release did not have began with the release that had it first', (t) => {
  const history = historyOf(t)
  history.start('one').write([request('old')])
  history.start('two').write([request('new', { route: '/b', path: '/b' })])
  const third = history.start('three')
  const again = { route: '/b', path: '/b' }
  third.write([request('old again'), request('new again', again), request('fine', { ...again, status: 200 })])
  const rows = rowsOf(third)
  assert.deepEqual(
    ['old', 'old again', 'new', 'new again', 'fine'].map((id) => rows[id]!.began_with),
    [null, null, 'two', 'two', null],
  )
})

test('messages that differ by numbers alone are one kind, another message is another', (t) => {
  const history = historyOf(t)
  const failing = (id: string, message: string): HistoryEntry[] => [
    request(id, { status: 200 }),
    {
      type: 'death',
      atMs: Date.now(),
      lane: 0,
      reason: 'crashed',
      message,
      plugin: null,
      handler: null,
      line: null,
      stack: [],
      ids: [id],
    },
  ]
  history.start('one').write(failing('a', 'order 17 is gone'))
  const second = history.start('two')
  second.write([...failing('b', 'order 18 is gone'), ...failing('c', 'no stock')])
  const rows = rowsOf(second)
  assert.deepEqual([rows.b!.began_with, rows.c!.began_with], [null, 'two'])
})

test('a process of the old release that fails later, beside the new one, does not blame its own', (t) => {
  const history = historyOf(t)
  const old = history.start('one', 'a', false)
  history.start('two', 'b', false)
  old.write([request('req_1')])
  assert.equal(rowsOf(old).req_1!.began_with, null)
})

test('without a release nothing began with one', (t) => {
  const history = historyOf(t)
  history.start(undefined).write([request('a')])
  const second = history.start('two')
  second.write([request('b', { route: '/b' })])
  assert.deepEqual(rowsOf(second).b, { release: 'two', began_with: null, replica: 'r' })
  assert.equal(rowsOf(second).a!.release, null)
})

test('a process that was replaced is dead at once', (t) => {
  const history = historyOf(t)
  history.start('one').write([request('req_1', { type: 'begun', ms: undefined, status: undefined, lane: undefined })])
  const second = history.start('two')
  const [row] = new Questions(second.database).answer({ kind: 'list', filter: {} }) as RequestSummary[]
  assert.equal(row!.state, 'unfinished')
  assert.ok(DEAD_MS > 1000, 'the time that has passed is no reason')
})

test('of more than FAILURE_KINDS_MAX kinds the oldest are forgotten', (t) => {
  const store = historyOf(t).start('one')
  const many = Array.from({ length: FAILURE_KINDS_MAX + 50 }, (_, n) =>
    request(`r${n}`, { route: `/r${letters(n)}`, atMs: Date.now() + n }),
  )
  store.write(many)
  t.mock.timers.tick(40_000)
  store.write([])
  const { kinds, first } = store.database
    .prepare('SELECT count(*) AS kinds, min(last_ms) AS first FROM failure')
    .get() as { kinds: number; first: number }
  assert.ok(kinds <= FAILURE_KINDS_MAX + 1 && kinds >= FAILURE_KINDS_MAX, String(kinds))
  assert.ok(first >= Date.now() - 40_000 + 49, 'the first ones')
})

/** A text of its own for each number, without digits. */
const letters = (n: number): string => [...String(n)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
