import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Piscina } from 'piscina'
import { parseExitReport } from '../../../src/transport/exit-report.ts'
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

test('last words come back as they were said, and a thread that said nothing has none', () => {
  const words = { kind: 'exit', message: 'process.exit(3) was called', stack: 'Error\n    at f (a.ts:1:2)' } as const
  assert.deepEqual(parseExitReport(JSON.stringify(words)), words)
  assert.equal(parseExitReport(new FlightReader(createFlightRecorder()).exitReport()), null)
})

test('the first of two last words are kept, and told as far as they go where they were cut off by their bound', () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  recorder.writeExitReport(JSON.stringify({ kind: 'throw', message: 'é'.repeat(EXIT_REPORT_BYTES), stack: '' }))
  recorder.writeExitReport('not these')
  const said = new FlightReader(memory).exitReport()
  assert.ok(Buffer.byteLength(said) <= EXIT_REPORT_BYTES)
  const words = parseExitReport(said)
  assert.deepEqual([words?.kind, words?.message.length, words?.stack], ['throw', 500, ''])
  assert.match(words!.message, /^\{"kind":"throw","message":"é+$/)
})

test('a thread that is gone has left its steps behind', async (t) => {
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
