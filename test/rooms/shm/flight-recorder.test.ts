import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Piscina } from 'piscina'
import {
  createFlightRecorder,
  EXIT_REPORT_BYTES,
  FLIGHT_STEPS,
  FlightReader,
  FlightRecorder,
  STEP_CALL,
  STEP_EVENT,
  STEP_REQUEST,
} from '../../../src/transport/memory/flight-recorder.ts'
import { until } from '../../support/until.ts'

test('steps are read as they were written, oldest first', () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  const reader = new FlightReader(memory)
  assert.deepEqual(reader.steps(), [])
  const request = recorder.begin(STEP_REQUEST, 7, 99, 'req_abc', 1000.5)
  const call = recorder.begin(STEP_CALL, 3, -1, '', 1001)
  recorder.end(call, 1002, true)
  recorder.endFrame(request, 98, 1003, false)
  assert.deepEqual(reader.steps(), [
    { kind: STEP_REQUEST, subject: 7, frame: 99, id: 'req_abc', begunMs: 1000.5, endedMs: 0, failed: false },
    { kind: STEP_CALL, subject: 3, frame: -1, id: '', begunMs: 1001, endedMs: 1002, failed: true },
  ])
  recorder.endFrame(request, 99, 1004, false)
  assert.equal(reader.steps()[0]!.endedMs, 1004)
})

test("the last 256 are kept, ids are cut at 32 bytes, and the end of a step that is gone is nobody else's", () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  const first = recorder.begin(STEP_EVENT, 0, 0, 'x'.repeat(100), 1)
  assert.equal(new FlightReader(memory).steps()[0]!.id, 'x'.repeat(32))
  for (let n = 1; n <= FLIGHT_STEPS; n++) recorder.begin(STEP_EVENT, n, n, `${n}`, n)
  recorder.end(first, 5, true)
  const steps = new FlightReader(memory).steps()
  assert.equal(steps.length, FLIGHT_STEPS)
  assert.deepEqual([steps[0]!.subject, steps.at(-1)!.subject], [1, FLIGHT_STEPS])
  assert.ok(steps.every(({ endedMs, failed }) => endedMs === 0 && !failed))
})

test('the first of the last words are kept, within their bound', () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  recorder.writeExitReport('über '.repeat(EXIT_REPORT_BYTES))
  recorder.writeExitReport('not these')
  const words = new FlightReader(memory).exitReport()
  assert.ok(words.startsWith('über über'))
  assert.ok(Buffer.byteLength(words) <= EXIT_REPORT_BYTES)
})

test('a thread that is gone has left its steps behind', { timeout: 60_000 }, async (t) => {
  const memory = createFlightRecorder()
  const pool = new Piscina({ filename: new URL('./flight-thread.ts', import.meta.url).href, maxThreads: 1 })
  pool.on('error', () => {})
  t.after(() => pool.destroy())
  const abort = new AbortController()
  const ended = pool.run(memory, { signal: abort.signal })
  const reader = new FlightReader(memory)
  await until(() => reader.steps().length > 0, 'its step', 30_000)
  abort.abort()
  await assert.rejects(ended)
  const [step] = reader.steps()
  assert.deepEqual([step!.subject, step!.id, step!.endedMs], [42, 'the-last', 0])
})
