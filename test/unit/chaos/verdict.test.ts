import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter, EventRecord } from '../../../src/contracts/event-bus.ts'
import { type Evidence, judge } from '../../chaos/verdict.ts'
import type { Outcome, Write } from '../../support/ledger.ts'

const count = (n: number, outcome: Outcome = 200, course = 'straight'): Write => ({
  subject: 'count',
  requestId: `r${n}`,
  key: String(n),
  course,
  outcome,
  id: outcome === 200 ? `counted${n}` : null,
})
const user = (n: number, outcome: Outcome = 201): Write => ({
  subject: 'user',
  requestId: `r${n}`,
  key: `${n}@example.org`,
  course: '',
  outcome,
  id: outcome === 201 ? `user${n}` : null,
})
const record = (id: string, event: string, n: number, parent: string | null = null): EventRecord => ({
  id,
  parent_id: parent,
  event,
  emitter: 'test',
  subscribers: [],
  payload_keys: [],
  timestamp: '2026-01-01T00:00:00.000Z',
  trace_id: null,
  request_id: `r${n}`,
})
const letter = (eventId: string): DeadLetter => ({
  id: `dl_${eventId}`,
  event: 'chaos.counted',
  event_id: eventId,
  subscriber: 'chaos.NoteCount',
  error: 'fails',
  attempts: 6,
  payload_keys: [],
  timestamp: '2026-01-01T00:00:00.000Z',
  request_id: null,
})
/** The records of a count that went well. */
const countedTree = (n: number) => [
  record(`counted${n}`, 'chaos.counted', n),
  record(`noted${n}`, 'chaos.noted', n, `counted${n}`),
]
const handledTree = (n: number) => [`counted${n}`, `noted${n}`]
const evidence = (given: Partial<Evidence>): Evidence => ({
  users: [],
  handled: new Set(),
  torn: [],
  deadLetters: [],
  records: [],
  ...given,
})
const problems = (writes: Write[], given: Partial<Evidence>) =>
  judge(writes, evidence(given)).findings.map(({ what, id, problem }) => `${what} ${id}: ${problem}`)

test('what was promised and is there is no finding', () => {
  const verdict = judge(
    [count(1), user(2), count(3, 500), user(4, 'reset')],
    evidence({
      users: [
        { id: 'user2', email: '2@example.org', welcomed_at: '2026-01-01T00:00:01.000Z' },
        // Nobody was told of this one.
        { id: 'user4', email: '4@example.org', welcomed_at: null },
      ],
      handled: new Set(handledTree(1)),
      records: [
        ...countedTree(1),
        record('created2', 'user.created', 2),
        record('sent2', 'welcome.sent', 2, 'created2'),
      ],
    }),
  )
  assert.deepEqual(verdict, {
    users: { acknowledged: 1, lost: 0, unacknowledged: 1, thereAllTheSame: 1 },
    events: {
      acknowledged: 1,
      accepted: 3,
      handled: 3,
      handledMoreThanOnce: 0,
      deadLetters: 0,
      innocentDeadLetters: 0,
      lost: 0,
    },
    trees: { whole: 2, broken: 0 },
    findings: [],
  })
})

test('an acknowledged user who is not in the database, or is another one, is lost', () => {
  const records = [record('created2', 'user.created', 2), record('sent2', 'welcome.sent', 2, 'created2')]
  const missing = judge([user(2)], evidence({ records }))
  assert.equal(missing.users.lost, 1)
  const other = { id: 'somebody', email: '2@example.org', welcomed_at: '2026-01-01T00:00:01.000Z' }
  assert.equal(judge([user(2)], evidence({ records, users: [other] })).users.lost, 1)
})

test('half a transaction is a loss', () => {
  assert.deepEqual(problems([], { torn: [7] }), ['write 7: row of a transaction that never ended is in the database'])
})

test('an acknowledged event that nobody handled is lost', () => {
  const verdict = judge([count(1)], evidence({ records: [record('counted1', 'chaos.counted', 1)] }))
  assert.equal(verdict.events.lost, 1)
  assert.deepEqual(verdict.findings, [
    { what: 'event', id: 'counted1', problem: 'chaos.counted straight is neither handled nor a dead letter' },
  ])
})

test('an event that the hub took is lost too when nobody handled it, whatever its publisher was told', () => {
  const records = countedTree(1)
  assert.deepEqual(problems([count(1, 500)], { records, handled: new Set(['counted1']) }), [
    'event noted1: chaos.noted  is neither handled nor a dead letter',
  ])
})

test('an event that fails always has to be a dead letter', () => {
  const writes = [count(1, 200, 'fails')]
  const records = [record('counted1', 'chaos.counted', 1), record('failed1', 'event.delivery.failed', 1, 'counted1')]
  const dead = judge(writes, evidence({ records, deadLetters: [letter('counted1')] }))
  assert.deepEqual(dead.findings, [])
  assert.deepEqual([dead.events.deadLetters, dead.events.innocentDeadLetters], [1, 0])
  const handled = problems(writes, { records: countedTree(1), handled: new Set(handledTree(1)) })
  assert.match(handled[0]!, /was handled and should have become a dead letter/)
})

test('a dead letter that was not meant to be one is counted, and no loss', () => {
  const records = [record('counted1', 'chaos.counted', 1), record('failed1', 'event.delivery.failed', 1, 'counted1')]
  const { events, findings } = judge([count(1)], evidence({ records, deadLetters: [letter('counted1')] }))
  assert.deepEqual([events.deadLetters, events.innocentDeadLetters, events.lost], [1, 1, 0])
  assert.deepEqual(findings, [])
})

test('an event that came twice and was handled twice is counted', () => {
  const records = [...countedTree(1), record('again', 'chaos.noted', 1, 'counted1')]
  const { events, findings } = judge([count(1)], evidence({ records, handled: new Set([...handledTree(1), 'again']) }))
  assert.equal(events.handledMoreThanOnce, 1)
  assert.deepEqual(findings, [])
})

test('each way in which a tree can be broken is found', () => {
  const handled = new Set(handledTree(1))
  const [root, child] = countedTree(1) as [EventRecord, EventRecord]
  const broken = (records: EventRecord[], pattern: RegExp, given: Partial<Evidence> = {}) => {
    const { trees, findings } = judge([count(1)], evidence({ handled, records, ...given }))
    assert.equal(trees.broken, 1)
    assert.match(findings.map(({ problem }) => problem).join('\n'), pattern)
  }
  broken([root, child, { ...child, id: 'orphan', parent_id: 'lost' }], /has a parent lost that nobody saw/, {
    handled: new Set([...handledTree(1), 'orphan']),
  })
  broken([root, { ...child, request_id: 'r9' }], /is of request r9/)
  broken([root], /has no child chaos.noted/)
  broken([], /has no root with the id of its request/)
  broken([{ ...root, event: 'chaos.noted' }], /has the root chaos.noted/)
  broken([root, child], /has no child event.delivery.failed/, { deadLetters: [letter('counted1')] })
})

test('a root with another id than the answer named is a broken tree', () => {
  const writes = [{ ...count(1), id: 'other' }]
  const found = problems(writes, { records: countedTree(1), handled: new Set([...handledTree(1), 'other']) })
  assert.deepEqual(found, ['tree r1: acknowledged event other has the root counted1'])
})
