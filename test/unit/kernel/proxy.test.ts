import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricRecord } from '../../../src/contracts/registry.ts'
import { DbError, type DbErrorKind, faultOf, HeddleError } from '../../../src/core/errors/catalogue.ts'
import { Meter, RECOVERED } from '../../../src/runtime/kernel/proxy.ts'
import { createMetricsRing, MetricsRing, type RawMetric } from '../../../src/transport/memory/metrics-ring.ts'
import { createNameTable, NameTable } from '../../../src/transport/memory/name-table.ts'
import {
  createStatusTable,
  STATUS_DEAD,
  STATUS_FAIL,
  STATUS_OK,
  STATUS_REFUSED,
  StatusTable,
} from '../../../src/transport/memory/words.ts'

function fixture() {
  const metrics = new MetricsRing(createMetricsRing())
  const names = new NameTable(createNameTable())
  const statuses = new StatusTable(createStatusTable())
  const changes: [string, string, string, string | null][] = []
  const sinkFaults: unknown[] = []
  const meter = new Meter({
    threadNumber: 3,
    metrics,
    names,
    statuses,
    flight: null,
    onStatus: (...change) => changes.push(change),
    onSinkFault: (thrown) => sinkFaults.push(thrown),
  })
  const written = (): (RawMetric & { call: string })[] => {
    const list: (RawMetric & { call: string })[] = []
    metrics.read(0, metrics.cursor, (raw) => list.push({ ...raw, call: names.nameOf(raw.callNumber) }))
    return list
  }
  return { meter, statuses, changes, sinkFaults, written }
}

class Base {
  inherited(): string {
    return 'inherited'
  }
}

class Sample extends Base {
  readonly name = 'sample'
  readonly promise = Promise.resolve('the very one')
  #secret = 41
  value = 1

  plain(add: number): number {
    return this.#secret + add
  }
  async later(ms: number): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, ms))
    return 'later'
  }
  same(): Promise<string> {
    return this.promise
  }
  throws(): never {
    throw new RangeError('out of range')
  }
  async rejects(): Promise<never> {
    throw new Error('rejected')
  }
  throwsNothing(): never {
    throw undefined
  }
  arrow = (): number => this.#secret
  boot(): void {}
  stop(): void {}
}

test('a call gives what the tool gives: the value, and the very error', async () => {
  const { meter } = fixture()
  const bare = new Sample()
  const tool = meter.wrap('sample', 0, bare)
  assert.equal(tool.plain(1), 42)
  assert.equal(await tool.same(), 'the very one')
  assert.equal(tool.inherited(), 'inherited')
  assert.equal(tool.arrow(), 41)
  assert.throws(() => tool.throws(), RangeError)
  await assert.rejects(tool.rejects(), { message: 'rejected' })
})

test('methods work without their object, and plain members show through', () => {
  const { meter } = fixture()
  const bare = new Sample()
  const tool = meter.wrap('sample', 0, bare)
  const { plain } = tool
  assert.equal(plain(1), 42)
  assert.equal(plain.call({ other: true } as never, 2), 43)
  bare.value = 5
  assert.equal(tool.value, 5)
})

test("the runtime's own methods of a tool are not handed out", () => {
  const { meter } = fixture()
  const tool = meter.wrap('sample', 0, new Sample()) as Partial<Sample>
  assert.equal(tool.boot, undefined)
  assert.equal(tool.stop, undefined)
})

test('each call is one record, with its duration, its outcome and its end', async () => {
  const { meter, written } = fixture()
  const tool = meter.wrap('sample', 0, new Sample())
  const startedMs = Date.now()
  tool.plain(1)
  await tool.later(30)
  assert.throws(() => tool.throws())
  await assert.rejects(tool.rejects())
  const records = written()
  assert.deepEqual(
    records.map(({ call, failed, threadNumber }) => [call, failed, threadNumber]),
    [
      ['sample.plain', false, 3],
      ['sample.later', false, 3],
      ['sample.throws', true, 3],
      ['sample.rejects', true, 3],
    ],
  )
  assert.ok(records[0]!.durationMs >= 0 && records[0]!.durationMs < 20)
  assert.ok(records[1]!.durationMs >= 29 && records[1]!.durationMs < 500, `${records[1]!.durationMs} ms`)
  for (const { endedMs } of records) assert.ok(endedMs > startedMs - 50 && endedMs < Date.now() + 50)
})

test('a call that throws or rejects makes its tool dead, the next that works brings it back', async () => {
  const { meter, statuses, changes } = fixture()
  const tool = meter.wrap('sample', 5, new Sample())
  assert.throws(() => tool.throws())
  assert.equal(statuses.get(5), STATUS_DEAD)
  assert.deepEqual(changes, [['sample', 'DEAD', 'out of range', 'tool']])
  tool.plain(1)
  assert.equal(statuses.get(5), STATUS_OK)
  assert.deepEqual(changes.at(-1), ['sample', 'OK', RECOVERED, null])
  assert.equal(RECOVERED, 'Recovered from transient failure')
  tool.plain(1)
  assert.equal(changes.length, 2, 'told once')
  await assert.rejects(tool.rejects())
  assert.deepEqual(changes.at(-1), ['sample', 'DEAD', 'rejected', 'tool'])
  await tool.later(1)
  assert.deepEqual(changes.at(-1), ['sample', 'OK', RECOVERED, null])
  assert.throws(() => tool.throwsNothing())
  assert.equal(statuses.get(5), STATUS_DEAD)
})

test("what the tool refused by its caller's fault is told apart, in the status, in the ring and to sinks", async () => {
  const { meter, statuses, changes, written } = fixture()
  const heard: MetricRecord[] = []
  meter.addSink((record) => heard.push(record))
  const db = meter.wrap('db', 5, {
    execute: (kind: DbErrorKind) => Promise.reject(new DbError(kind, kind)),
    transaction: (work: () => unknown) => work(),
    query: () => 1,
  })
  await assert.rejects(db.execute('unique_violation'))
  assert.equal(statuses.get(5), STATUS_REFUSED)
  await assert.rejects(db.execute('unavailable'))
  assert.equal(statuses.get(5), STATUS_DEAD)
  await assert.rejects(db.execute('serialization'))
  assert.equal(statuses.get(5), STATUS_REFUSED)
  db.query()
  assert.equal(statuses.get(5), STATUS_OK)
  assert.throws(() =>
    db.transaction(() => {
      throw new Error('sold out')
    }),
  )
  assert.deepEqual(changes, [
    ['db', 'DEAD', 'unique_violation', 'caller'],
    ['db', 'DEAD', 'unavailable', 'tool'],
    ['db', 'DEAD', 'serialization', 'caller'],
    ['db', 'OK', RECOVERED, null],
    ['db', 'DEAD', 'sold out', 'caller'],
  ])
  const outcomes = [
    [false, 'caller'],
    [false, undefined],
    [false, 'caller'],
    [true, undefined],
    [false, 'caller'],
  ]
  assert.deepEqual(
    heard.map(({ success, fault }) => [success, fault]),
    outcomes,
  )
  assert.deepEqual(
    written().map(({ failed, refused }) => [!failed, refused ? 'caller' : undefined]),
    outcomes,
  )
})

test("whose fault an error is, is told by its code, and by the tool's kind of call", () => {
  for (const code of [
    'EVENT_CONTRACT',
    'EVENT_PAYLOAD_INVALID',
    'STATE_VALUE_INVALID',
    'AUTH_INVALID_INPUT',
    'HTTP_VALIDATION',
  ] as const)
    assert.equal(faultOf(new HeddleError(code), false), 'caller', code)
  for (const code of ['EVENT_BUS_FULL', 'EVENT_BUS_UNAVAILABLE', 'KV_UNAVAILABLE', 'STATE_FULL', 'INTERNAL'] as const)
    for (const runsWork of [true, false]) assert.equal(faultOf(new HeddleError(code), runsWork), 'tool', code)
  assert.equal(faultOf(new DbError('syntax', 'no such table: users'), true), 'tool')
  for (const thrown of [undefined, 'text', new Error('x'), Proxy.revocable({}, {}).proxy]) {
    assert.equal(faultOf(thrown, false), 'tool')
    assert.equal(faultOf(thrown, true), 'caller')
  }
})

test('a failed health check is not made good by a call', () => {
  const { meter, statuses, changes } = fixture()
  const tool = meter.wrap('sample', 0, new Sample())
  statuses.set(0, STATUS_FAIL)
  tool.plain(1)
  assert.equal(statuses.get(0), STATUS_FAIL)
  assert.deepEqual(changes, [])
})

test('a sink gets the record before the call has returned; one that throws is reported once and breaks nothing', () => {
  const { meter, sinkFaults } = fixture()
  const tool = meter.wrap('sample', 0, new Sample())
  const heard: MetricRecord[] = []
  const removeBad = meter.addSink(() => {
    throw new Error('a bad sink')
  })
  const remove = meter.addSink((record) => heard.push(record))
  assert.equal(tool.plain(1), 42)
  assert.equal(heard.length, 1)
  assert.deepEqual(Object.keys(heard[0]!), ['tool', 'method', 'duration_ms', 'success', 'timestamp'])
  assert.deepEqual([heard[0]!.tool, heard[0]!.method, heard[0]!.success], ['sample', 'plain', true])
  assert.match(heard[0]!.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(tool.plain(2), 43)
  assert.throws(() => tool.throws(), RangeError, 'the error of the tool, not of the sink')
  assert.equal(heard.at(-1)!.success, false)
  assert.equal(sinkFaults.length, 1)
  remove()
  removeBad()
  tool.plain(3)
  assert.equal(heard.length, 3)
})
