import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import type { Asked } from '../../chaos/orders.ts'
import { type Evidence, FAULTS, type FaultName, type HandledRow, judge } from '../../chaos/verdict.ts'

const asked = (number: number): Asked => ({
  kind: 'order',
  key: 'k',
  number,
  requestId: `kill-k-${number}`,
  outcome: 201,
  eventId: `p${number}`,
})
const chain = (number: number): HandledRow[] => {
  const row = { number, key: 'k', request_id: `kill-k-${number}` }
  return [
    { ...row, event: 'order.placed', event_id: `p${number}`, parent_id: null, child_id: `c${number}` },
    { ...row, event: 'order.confirmed', event_id: `c${number}`, parent_id: `p${number}`, child_id: `s${number}` },
    { ...row, event: 'order.shipped', event_id: `s${number}`, parent_id: `c${number}`, child_id: null },
  ]
}
/** Three orders, and everything that should come of them. */
const whole = () => ({
  asked: [1, 2, 3].map(asked),
  placed: [1, 2, 3].map((number) => ({ number, key: 'k', event_id: `p${number}` })),
  handled: [1, 2, 3].flatMap(chain),
  billed: ['p1', 'p2', 'p3'],
  left: [] as string[],
  letters: [] as Evidence['letters'],
  deleted: [] as string[],
  torn: [] as string[],
  records: null as Evidence['records'],
})

function found(evidence: Evidence): Partial<Record<FaultName, readonly string[]>> {
  const { faults } = judge(evidence)
  return Object.fromEntries(FAULTS.filter((name) => faults[name].length > 0).map((name) => [name, faults[name]]))
}

test('what is whole has no fault, and repeats are none', () => {
  const evidence = whole()
  assert.deepEqual(found(evidence), {})
  evidence.handled.push(evidence.handled[0]!, evidence.handled[3]!)
  assert.deepEqual(found(evidence), {})
  const { faults, setAside, ...counted } = judge(evidence)
  assert.deepEqual(counted, { repeats: 2, rows: 3, events: 9, trees: 3, acknowledged: 3 })
})

test('a request that was not answered may have its row and its event, or neither', () => {
  const evidence = whole()
  evidence.asked[1] = { ...evidence.asked[1]!, outcome: 'reset', eventId: null }
  assert.deepEqual(found(evidence), {})
  evidence.placed.splice(1, 1)
  evidence.handled.splice(3, 3)
  evidence.billed.splice(1, 1)
  assert.deepEqual(found(evidence), {})
})

test('a row without its event, an event without its row, and an answer without either are found', () => {
  const withoutEvent = whole()
  withoutEvent.handled.splice(3, 3)
  assert.deepEqual(found(withoutEvent), { 'rows without event': ['order 2: p2'] })
  const withoutRow = whole()
  withoutRow.placed.splice(1, 1)
  withoutRow.billed.splice(1, 1)
  assert.deepEqual(found(withoutRow), {
    'events without row': ['p2 of order 2'],
    'acknowledged requests without row': ['kill-k-2: p2'],
  })
})

test('an event that nobody has handled is found: a child, a note, one that is left in the log', () => {
  const child = whole()
  child.handled.splice(5, 1)
  assert.deepEqual(found(child), { 'events never handled': ['s2'] })
  const note = whole()
  note.asked.push({ ...asked(4), kind: 'note', eventId: 'n4' })
  assert.deepEqual(found(note), { 'events never handled': ['n4'] })
  assert.deepEqual(found({ ...whole(), left: ['x'] }), { 'events never handled': ['x'] })
})

test('an effect that is missing, doubled or of no order is found', () => {
  const effects = (...billed: string[]) => found({ ...whole(), billed })
  assert.deepEqual(effects('p1', 'p3', 'p3', 'p4'), {
    'transactional effects not exactly 1': ['p2: 0', 'p3: 2', 'p4: without an order'],
  })
})

test('a dead letter is found', () => {
  const evidence = whole()
  evidence.handled.splice(5, 1)
  const failed = [{ id: 's2', error: 'no carrier' }]
  assert.deepEqual(found({ ...evidence, letters: failed }), { 'events that became dead letters': ['s2: no carrier'] })
  const error = 'The process or its thread died 3 times while it handled this event'
  const letters = [{ id: 's2', error }]
  assert.deepEqual(found({ ...evidence, letters }), {})
  assert.equal(judge({ ...evidence, letters }).setAside, 1)
})

test('a parent that nobody has published, another request and a root with a parent are found', () => {
  const broken = (at: number, change: Partial<HandledRow>) => {
    const evidence = whole()
    evidence.handled[at] = { ...evidence.handled[at]!, ...change }
    return found(evidence)['broken trees']
  }
  assert.deepEqual(broken(4, { parent_id: 'other' }), ['order.confirmed c2: nobody has published its parent other'])
  assert.deepEqual(broken(4, { parent_id: 'p1' }), ['order.confirmed c2: its parent is order.placed of another order'])
  assert.deepEqual(broken(4, { parent_id: null }), ['order.confirmed c2: it has no parent'])
  assert.deepEqual(broken(4, { request_id: null }), ['order.confirmed c2: its request is null'])
  assert.deepEqual(broken(3, { parent_id: 'p1' }), ['order.placed p2: a root has the parent p1'])
})

test('traces that lack an event, or a failure, or tell of another parent or request are found', () => {
  const record = ({ event_id: id, ...row }: HandledRow) => ({ id, ...row }) as unknown as EventRecord
  const traced = (change: (records: Map<string, EventRecord>) => void, letters: Evidence['letters'] = []) => {
    const records = new Map(
      chain(1)
        .concat(chain(2), chain(3))
        .map((row) => [row.event_id, record(row)]),
    )
    change(records)
    return found({ ...whole(), letters, records })['broken trees']
  }
  assert.equal(
    traced(() => {}),
    undefined,
  )
  assert.deepEqual(
    traced((records) => records.delete('c2')),
    ['order.confirmed c2: the traces lack it'],
  )
  const other = (change: Partial<EventRecord>) =>
    traced((records) => records.set('c2', { ...records.get('c2')!, ...change }))![0]
  assert.match(other({ parent_id: 'p1' })!, /the traces have the parent p1/)
  assert.match(other({ request_id: 'r' })!, /and the request r$/)
  const letters = [{ id: 'x', error: 'died 3 times' }]
  assert.deepEqual(
    traced(() => {}, letters),
    ['x: the traces lack event.delivery.failed'],
  )
})

test('half a transaction is found', () => {
  assert.deepEqual(found({ ...whole(), torn: ['a row'] }), { 'rows of transactions that never ended': ['a row'] })
})

test('events of one key that pass each other are found, those of two keys may', () => {
  const evidence = whole()
  evidence.handled = [...chain(1), ...chain(3), ...chain(2)]
  assert.equal(found(evidence)['keyed order broken']?.length, 3)
  assert.equal(found(evidence)['keyed order broken']![0], 'order.placed 2 of k came after 3: p2')
  const late = {
    ...evidence,
    asked: evidence.asked.map((one) => (one.number === 2 ? { ...one, outcome: 504, eventId: null } : one)),
  }
  assert.deepEqual(found(late), {}, 'a client that was told 504 orders again before its handler has committed')
  const twoKeys = whole()
  twoKeys.handled = twoKeys.handled.map((row) =>
    row.number === 3 ? { ...row, key: 'other', request_id: 'kill-other-3' } : row,
  )
  twoKeys.handled.unshift(...twoKeys.handled.splice(6))
  assert.deepEqual(found(twoKeys), {})
})
