import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExitReport } from '../../../src/transport/exit-report.ts'
import {
  createFlightRecorder,
  EXIT_REPORT_BYTES,
  FlightReader,
  FlightRecorder,
} from '../../../src/transport/memory/flight-recorder.ts'

test('last words come back as they were said', () => {
  const words = { kind: 'exit', message: 'process.exit(3) was called', stack: 'Error\n    at f (a.ts:1:2)' } as const
  assert.deepEqual(parseExitReport(JSON.stringify(words)), words)
})

test('a thread that said nothing has no last words', () => {
  assert.equal(parseExitReport(''), null)
  assert.equal(parseExitReport(new FlightReader(createFlightRecorder()).exitReport()), null)
})

test('last words that were cut off by their bound are told as far as they go', () => {
  const memory = createFlightRecorder()
  new FlightRecorder(memory).writeExitReport(
    JSON.stringify({ kind: 'throw', message: 'é'.repeat(EXIT_REPORT_BYTES), stack: '' }),
  )
  const words = parseExitReport(new FlightReader(memory).exitReport())
  assert.equal(words?.kind, 'throw')
  assert.match(words!.message, /^\{"kind":"throw","message":"é+$/)
  assert.equal(words!.message.length, 500)
  assert.equal(words!.stack, '')
})

test('the first of two last words is kept', () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  for (const message of ['first', 'second'])
    recorder.writeExitReport(JSON.stringify({ kind: 'throw', message, stack: '' }))
  assert.equal(parseExitReport(new FlightReader(memory).exitReport())?.message, 'first')
})
