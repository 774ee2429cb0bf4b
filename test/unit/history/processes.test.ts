import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RequestDetail, RequestSummary } from '#heddle'
import type { WorkPart } from '../../../src/contracts/requests.ts'
import { Questions } from '../../../src/history/questions.ts'
import { HistoryStore } from '../../../src/history/store.ts'
import { temporaryFolder } from '../../support/folder.ts'

// The code of the page is JavaScript without types.
const { rowsOf } = createRequire(import.meta.url)('../../../domains/system/assets/dashboard/request-tree.js')

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const AT_MS = Date.now()
const request = {
  clientId: null,
  atMs: AT_MS,
  method: 'GET',
  path: '/a',
  route: '/a',
  plugin: 'a.A',
  ms: 4,
  status: 200,
  lane: 0,
}
const work = (more: Partial<WorkPart>): WorkPart => ({
  type: 'work',
  kind: 'request',
  name: 'a.A.show',
  plugin: 'a.A',
  thread: 0,
  requestId: 'req_1',
  eventId: null,
  atMs: AT_MS + 1,
  ms: 1,
  calls: [],
  ...more,
})

/** Two processes that share one file. */
function twoStores(t: TestContext): HistoryStore[] {
  const folder = temporaryFolder(t)
  const init = { historyPath: join(folder, 'h.db'), historyMaxMb: 1, historyHours: 278 }
  return ['one', 'two'].map((replicaId) => {
    const store = new HistoryStore({ ...init, replicaId, heddleRelease: undefined })
    t.after(() => store.close())
    return store
  })
}

test('what another process did for a request says which one that was', (t) => {
  const [one, two] = twoStores(t)
  const call = { parent: -1, tool: 'event_bus', method: 'publish', fromMs: 0, ms: 1, event: 'a.done', eventId: 'evt_1' }
  one!.write([{ type: 'request', id: 'req_1', ...request }, work({ calls: [call] })])
  two!.write([work({ kind: 'event', name: 'b.B.note', requestId: null, eventId: 'evt_1', atMs: AT_MS + 3 })])
  const detail = new Questions(one!.database).answer({ kind: 'one', id: 'req_1' }) as RequestDetail
  assert.deepEqual(
    detail.parts.map((part) => part.replica),
    [undefined, 'two'],
  )
  assert.deepEqual(
    rowsOf(detail).map(({ name, thread }: { name: string; thread: string }) => [name, thread]),
    [
      ['GET /a', 'one primary'],
      ['a.A.show', 'one lane 0'],
      ['event_bus.publish', 'one lane 0'],
      ['b.B.note', 'two lane 0'],
    ],
  )
})

test('the requests of one process are found among those of all that share the file', (t) => {
  const [one, two] = twoStores(t)
  one!.write([{ type: 'request', id: 'req_1', ...request }])
  two!.write([{ type: 'request', id: 'req_2', ...request, atMs: AT_MS + 1 }])
  const of = (filter: object) =>
    (new Questions(one!.database).answer({ kind: 'list', filter }) as RequestSummary[]).map(({ id, replica }) => [
      id,
      replica,
    ])
  assert.deepEqual(of({}), [
    ['req_2', 'two'],
    ['req_1', 'one'],
  ])
  assert.deepEqual(of({ replica: 'two' }), [['req_2', 'two']])
})

test('the id of a trace leads to its first request', (t) => {
  const [store] = twoStores(t)
  store!.write([
    { type: 'request', id: 'req_1', ...request },
    work({ traceId: TRACE_ID }),
    { type: 'request', id: 'req_2', ...request },
    work({ requestId: 'req_2', traceId: TRACE_ID, atMs: AT_MS + 2 }),
  ])
  const questions = new Questions(store!.database)
  assert.equal((questions.answer({ kind: 'one', id: TRACE_ID }) as RequestDetail).id, 'req_1')
  assert.equal(questions.answer({ kind: 'one', id: TRACE_ID.replace('4', '5') }), null)
})

test('the id of an event leads to the request with which its chain began', (t) => {
  const [store] = twoStores(t)
  const publishes = (eventId: string) => [
    { parent: -1, tool: 'event_bus', method: 'publish', fromMs: 0, ms: 1, event: 'a.done', eventId },
  ]
  const ofEvent = { kind: 'event' as const, requestId: null }
  store!.write([
    { type: 'request', id: 'req_1', ...request },
    work({ calls: publishes('evt_1') }),
    work({ ...ofEvent, eventId: 'evt_1', calls: publishes('evt_2') }),
    work({ ...ofEvent, eventId: 'evt_2', calls: publishes('evt_3') }),
    work({ ...ofEvent, eventId: 'evt_alone' }),
  ])
  const questions = new Questions(store!.database)
  const idOf = (id: string) => (questions.answer({ kind: 'one', id }) as RequestDetail | null)?.id
  // The last one had no subscriber.
  assert.deepEqual(['evt_1', 'evt_2', 'evt_3'].map(idOf), ['req_1', 'req_1', 'req_1'])
  assert.deepEqual(['evt_alone', 'evt_none'].map(idOf), [undefined, undefined])

  // An event has the id that the client has chosen, which may be that of others, too.
  store!.write([
    { type: 'request', id: 'req_2', ...request, clientId: 'chosen' },
    work({ requestId: 'req_2', calls: publishes('evt_4') }),
    work({ ...ofEvent, requestId: 'chosen', eventId: 'evt_4', calls: publishes('evt_5') }),
    work({ ...ofEvent, requestId: 'chosen', eventId: 'evt_5' }),
    // Who has published it is not kept.
    work({ ...ofEvent, requestId: 'req_1', eventId: 'evt_6' }),
  ])
  assert.deepEqual(['evt_4', 'evt_5', 'evt_6'].map(idOf), ['req_2', 'req_2', 'req_1'])
})

test('what comes by the clock and went well is left out, or listed alone', (t) => {
  const [store] = twoStores(t)
  const job = { kind: 'job' as const, name: 'a.A/tick' }
  store!.write([
    { type: 'request', id: 'req_1', ...request },
    { type: 'request', id: 'req_2', ...request, path: '/health', route: '/health' },
    work({ ...job, requestId: 'job_1' }),
    work({ ...job, requestId: 'job_2', error: { type: 'Error', message: 'no', stack: '' } }),
  ])
  const idsOf = (filter: object): string[] =>
    (new Questions(store!.database).answer({ kind: 'list', filter }) as RequestSummary[]).map(({ id }) => id).sort()
  assert.deepEqual(idsOf({ noise: 'without' }), ['job_2', 'req_1'])
  assert.deepEqual(idsOf({ noise: 'only' }), ['job_1', 'req_2'])
  assert.deepEqual(idsOf({ kind: 'job' }), ['job_1', 'job_2'])
})
