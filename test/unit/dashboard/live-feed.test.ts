import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CallWindows } from '../../../domains/system/dashboard/call-windows.ts'
import type { DashboardFrame, HelloFrame, LiveFrame, SecondFrame } from '../../../domains/system/dashboard/frames.ts'
import { LiveFeed } from '../../../domains/system/dashboard/live-feed.ts'
import { LogBacklog } from '../../../domains/system/dashboard/log-backlog.ts'
import { SAMPLE_MAX_RECORDS, TreeSample } from '../../../domains/system/dashboard/tree-sample.ts'
import { WorkWindows } from '../../../domains/system/dashboard/work-windows.ts'
import type { LogSink } from '../../../src/contracts/logger.ts'
import {
  type DeadLetter,
  type EventRecord,
  HeddleError,
  type LaneInfo,
  type MetricRecord,
  type RequestSummary,
  type SseStream,
  type Tools,
} from '../../../src/index.ts'

const record = (n: number, parent: number | null = null): EventRecord => ({
  id: `evt_${n}`,
  parent_id: parent === null ? null : `evt_${parent}`,
  event: 'a.b',
  emitter: 'test.A',
  subscribers: [],
  payload_keys: [],
  timestamp: '2026-01-01T00:00:00.000Z',
  request_id: null,
  trace_id: null,
})

/** Tools that count their listeners, and deliver what the test gives them. */
function fakeTools() {
  const sinks = new Set<unknown>()
  const logSinks = new Set<LogSink>()
  const listeners = new Set<(event: EventRecord) => void>()
  const listen = <T>(set: Set<T>, sink: T) => {
    set.add(sink)
    return () => void set.delete(sink)
  }
  let fired = 7
  const jobs = [{ failures: 3 }]
  const tools = {
    event_bus: {
      addListener: (listener: (event: EventRecord) => void) => listen(listeners, listener),
      addFailureListener: (sink: unknown) => listen(sinks, sink),
      getDeadLetters: () => [],
      getTraceHistory: () => [record(1)],
      getTopology: () => ({ 'a.b': { emitters: ['test.A'], subscribers: [], fire_count: fired } }),
    },
    scheduler: { list: () => jobs },
    logger: { addSink: (sink: LogSink) => listen(logSinks, sink) },
    registry: {
      addMetricsSink: (sink: unknown) => listen(sinks, sink),
      addRequestSink: (sink: unknown) => listen(sinks, sink),
      getMetrics: () => [],
      getLanes: () => [],
      getReadiness: () => ({ ready: true, reasons: [], lanes: {} }),
      getRoutes: () => [
        { plugin: 'test.A', method: 'POST', path: '/a' },
        { plugin: 'test.B', method: 'GET', path: '/b' },
        { plugin: 'test.B', method: 'PUT', path: '/b' },
      ],
      getRequests: () => Promise.reject(new HeddleError('HISTORY_OFF')),
      getSystemDump: () => ({ tools: {}, plugins: {}, lanes: {} }),
    },
  } as unknown as Tools
  const log: LogSink = (...record) => {
    for (const sink of logSinks) sink(...record)
  }
  const publish = (event: EventRecord): void => {
    fired++
    for (const listener of listeners) listener(event)
  }
  const { event_bus, registry, scheduler, logger } = tools
  const sources = { event_bus, registry, scheduler, backlog: new LogBacklog(logger), isSample: false }
  return { sources, jobs, log, publish, listening: () => sinks.size + listeners.size }
}

function client() {
  const leave = new AbortController()
  const frames: DashboardFrame[] = []
  const stream: SseStream = {
    send: (frame) => void frames.push(frame as DashboardFrame),
    close: () => leave.abort(),
    signal: leave.signal,
  }
  const ofType = <T>(type: string) => frames.filter((frame) => frame.type === type) as T[]
  return { stream, frames, leave: () => leave.abort(), ofType }
}

/** Runs the continuations of settled promises, but no mocked timer. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

test('the feed holds sinks and timers only while somebody looks', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { sources, publish, listening } = fakeTools()
  const feed = new LiveFeed(sources)
  assert.equal(listening(), 0)
  const [first, second] = [client(), client()]
  await Promise.all([feed.open(first.stream), feed.open(second.stream)])
  assert.equal(listening(), 4, 'once for all clients')
  assert.deepEqual(first.ofType<HelloFrame>('hello')[0]!.routes, { 'test.A': 'POST /a' })
  assert.match(first.ofType<HelloFrame>('hello')[0]!.history_off!, /HISTORY_ENABLED=true/)
  first.leave()
  publish(record(2))
  t.mock.timers.tick(100)
  assert.deepEqual(
    second.ofType<LiveFrame>('live').map(({ events_total, records }) => [events_total, records.length]),
    [[8, 1]],
  )
  assert.equal(first.frames.length, 1, 'nothing after it has left')
  second.leave()
  assert.equal(listening(), 0)
  t.mock.timers.tick(5000)
  await settle()
  assert.equal(second.frames.length, 2)
})

test('a page that is opened gets the last log records, then each one with its request and its fields', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { sources, log } = fakeTools()
  const { stream, ofType, leave } = client()
  const say = (message: string, fields: Record<string, unknown> = {}): void =>
    log('INFO', message, '2026-01-01T00:00:00.000Z', 'a.B', { request_id: 'req_1', event_id: null, fields })
  for (let n = 1; n <= 501; n++) say(`before ${n}`)
  await new LiveFeed(sources).open(stream)
  const { logs } = ofType<HelloFrame>('hello')[0]!
  assert.deepEqual([logs.length, logs[0]!.n, logs[0]!.message, logs[0]!.request_id], [500, 2, 'before 2', 'req_1'])
  say('after', { item: 7, stack: 'x'.repeat(10_000) })
  t.mock.timers.tick(100)
  const [entry] = ofType<LiveFrame>('live')[0]!.logs
  assert.deepEqual([entry!.n, entry!.message, entry!.fields!.item], [502, 'after', 7])
  assert.equal(String(entry!.fields!.stack).length, 8001, 'a long text is cut')
  leave()
})

test('a flood is counted whole, and told in frames of a bounded size', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { sources, publish } = fakeTools()
  const { stream, ofType, leave } = client()
  await new LiveFeed(sources).open(stream)
  for (let n = 0; n < 10_000; n++) publish(record(n))
  t.mock.timers.tick(100)
  const [live] = ofType<LiveFrame>('live')
  assert.equal(live!.events_total, 10_007)
  assert.ok(live!.records.length <= SAMPLE_MAX_RECORDS)
  t.mock.timers.tick(1000)
  await settle()
  const [second] = ofType<SecondFrame>('second')
  assert.equal(second!.topology['a.b']!.fire_count, 10_007)
  t.mock.timers.tick(1000)
  await settle()
  assert.deepEqual(ofType<SecondFrame>('second')[1]!.topology, {}, 'only what has changed')
  leave()
})

test('of a flood whole trees are taken, and those that are there can grow', () => {
  const sample = new TreeSample()
  const taken = new Set<string>()
  const offer = (event: EventRecord): void => {
    if (sample.takes(event)) taken.add(event.id)
  }
  for (let n = 0; n < 1000; n++) offer(record(n))
  for (let n = 0; n < 1000; n++) offer(record(1000 + n, n))
  assert.ok(taken.size <= SAMPLE_MAX_RECORDS)
  for (let n = 0; n < 1000; n++) assert.equal(taken.has(`evt_${n}`), taken.has(`evt_${1000 + n}`), `tree ${n}`)
  sample.next()
  offer(record(5000, 999))
  assert.ok(!taken.has('evt_5000'), 'nothing hangs below what was left out')
  offer(record(5001, 3))
  assert.ok(taken.has('evt_5001'))
  // Five children each: there is no room for a hundred of these trees.
  let whole = 0
  for (let frame = 1; frame <= 20; frame++) {
    sample.next()
    taken.clear()
    for (let n = 0; n < 6000; n++) offer(record(frame * 10_000 + n, n < 1000 ? null : frame * 10_000 + (n % 1000)))
    const roots = [...taken].filter((id) => Number(id.slice(4)) % 10_000 < 1000).length
    assert.ok(roots >= 5, `${roots} trees`)
    if (taken.size === roots * 6) whole++
  }
  assert.ok(whole >= 12, `in ${whole} of 20 frames all trees are whole`)
})

test('percentiles are those of the last minute, off by a tenth at most', () => {
  const windows = new CallWindows()
  const call = (duration_ms: number, success = true): MetricRecord => ({
    tool: 'db',
    method: 'query',
    duration_ms,
    success,
    timestamp: '2026-01-01T00:00:00.000Z',
  })
  for (let n = 1; n <= 1000; n++) windows.add(call(n / 10, n % 100 !== 0))
  const [figures] = windows.turn()
  assert.equal(figures!.call, 'db.query')
  assert.deepEqual([figures!.calls, figures!.errors, figures!.minute_calls], [1000, 10, 1000])
  for (const [got, wanted] of [
    [figures!.p50_ms, 50],
    [figures!.p95_ms, 95],
    [figures!.p99_ms, 99],
  ] as const) {
    assert.ok(Math.abs(got - wanted) / wanted < 0.1, `${got} for ${wanted}`)
  }
  windows.add(call(1e9))
  windows.add(call(0))
  const [next] = windows.turn()
  assert.deepEqual([next!.calls, next!.errors, next!.minute_calls], [2, 0, 1002])
  for (let n = 0; n < 58; n++) assert.equal(windows.turn().length, 1)
  assert.equal(windows.turn()[0]!.minute_calls, 2)
  assert.deepEqual(windows.turn(), [], 'a minute later nothing is left')
})

test('calls from before anybody looked stand at their seconds', () => {
  const windows = new CallWindows()
  const nowMs = Date.parse('2026-01-01T00:01:00.000Z')
  const past = (secondsAgo: number): MetricRecord => ({
    tool: 'db',
    method: 'query',
    duration_ms: 1,
    success: true,
    timestamp: new Date(nowMs - secondsAgo * 1000).toISOString(),
  })
  windows.addPast([past(90), past(30), past(2)], nowMs)
  assert.deepEqual(
    windows.turn().map(({ calls, minute_calls }) => [calls, minute_calls]),
    [[0, 2]],
  )
  for (let n = 0; n < 40; n++) windows.turn()
  assert.equal(windows.turn()[0]!.minute_calls, 1)
})

test('failed runs of jobs are failures of the last minute, as soon as the page is open', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { sources, jobs } = fakeTools()
  const { stream, ofType, leave } = client()
  await new LiveFeed(sources).open(stream)
  await settle()
  const next = async () => {
    t.mock.timers.tick(1000)
    await settle()
    const { work } = ofType<SecondFrame>('second').at(-1)!
    return [work.failed, work.minute_failed_jobs]
  }
  assert.deepEqual(await next(), [0, 0], 'those of before the page are not of this minute')
  jobs[0]!.failures += 2
  assert.deepEqual(await next(), [2, 2])
  assert.deepEqual(await next(), [0, 2])
  leave()
})

const nowMs = Date.parse('2026-01-01T00:01:00.000Z')
const past = (secondsAgo: number, status: number | null, kind = 'request') =>
  ({ kind, at_ms: nowMs - secondsAgo * 1000, duration_ms: 5, status }) as RequestSummary

test('failures of every kind are counted, those of before anybody looked too, and streams have no latency', () => {
  const windows = new WorkWindows(nowMs)
  const letter = (secondsAgo: number) =>
    ({ timestamp: new Date(nowMs - secondsAgo * 1000).toISOString() }) as DeadLetter
  const lane = (...secondsAgo: number[]) =>
    ({ deaths: secondsAgo.map((ago) => ({ at: new Date(nowMs - ago * 1000).toISOString() })) }) as unknown as LaneInfo
  windows.addPast(
    {
      requests: [past(90, 500), past(30, 503), past(20, 200)],
      requestsSinceMs: nowMs - 60_000,
      failed: [past(90, 500), past(30, 503), past(25, 200), past(15, null, 'job')],
      failedSinceMs: nowMs - 60_000,
      letters: [letter(80), letter(10)],
    },
    nowMs,
  )
  for (let n = 0; n < 20; n++) windows.add({ status: 500, duration_ms: 2 }, false)
  windows.add({ status: 200, duration_ms: 3_600_000 }, true)
  windows.add({ status: 404, duration_ms: 2 }, false)
  windows.add({ status: 0, duration_ms: 2 }, false)
  windows.addFailed('delivery')
  windows.addFailed('job', 2)
  const figures = windows.turn([lane(70, 40), lane(0.5)], nowMs)
  assert.deepEqual([figures.requests, figures.failed], [22, 24])
  assert.deepEqual([figures.minute_requests, figures.minute_seconds, figures.failed_seconds], [24, 60, 60])
  assert.deepEqual(
    [
      figures.minute_failed_requests,
      figures.minute_failed_deliveries,
      figures.minute_failed_jobs,
      figures.minute_deaths,
    ],
    [21, 2, 3, 2],
  )
  assert.ok(figures.minute_p99_ms! < 10)
  for (let n = 0; n < 59; n++) windows.turn([], nowMs)
  const { minute_requests, minute_failed_jobs, minute_failed_requests } = windows.turn([], nowMs)
  assert.deepEqual(
    [minute_requests, minute_failed_jobs, minute_failed_requests],
    [0, 0, 0],
    'a minute later nothing is left',
  )
})

test('figures say of how many seconds they are, where the time before the page is not known', () => {
  const unknown = { requests: [], requestsSinceMs: nowMs, failed: [], failedSinceMs: nowMs, letters: [] }
  const none = new WorkWindows(nowMs)
  none.addPast(unknown, nowMs)
  const spans = (windows: WorkWindows, afterSec: number) => {
    const { minute_seconds, failed_seconds } = windows.turn([], nowMs + afterSec * 1000)
    return [minute_seconds, failed_seconds]
  }
  assert.deepEqual(
    [spans(none, 1), spans(none, 12), spans(none, 90)],
    [
      [1, 1],
      [12, 12],
      [60, 60],
    ],
  )
  const sample = new WorkWindows(nowMs)
  sample.addPast({ ...unknown, failed: [past(30, 500)], failedSinceMs: nowMs - 60_000 }, nowMs)
  const figures = sample.turn([], nowMs + 1000)
  assert.deepEqual([figures.minute_requests, figures.minute_seconds], [0, 1])
  assert.deepEqual([figures.minute_failed_requests, figures.failed_seconds], [1, 60])
})
