import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordedDeliveries } from '../../../src/lane/flight.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import {
  createFlightRecorder,
  FlightReader,
  FlightRecorder,
  STEP_EVENT,
  STEP_STREAM_EVENT,
} from '../../../src/transport/memory/flight-recorder.ts'

test('deliveries of the hub and of the streams with the same id have a step each, and their answers go where they belong', () => {
  const memory = createFlightRecorder()
  const recorder = new FlightRecorder(memory)
  const answers: string[] = []
  const sinkOf = (broker: string) => ({
    delivered: (id: number) => void answers.push(`${broker} delivered ${id}`),
    reply: (id: number, json: string) => void answers.push(`${broker} reply ${id} ${json}`),
    failed: (id: number, { message }: { message: string }) => void answers.push(`${broker} failed ${id} ${message}`),
  })
  const hub = new RecordedDeliveries(recorder, STEP_EVENT, sinkOf('hub'))
  const streams = new RecordedDeliveries(recorder, STEP_STREAM_EVENT, sinkOf('streams'))
  const frame = (id: string, subscriber: number) => ({ id, subscriber }) as EventFrame
  hub.begin(1, frame('evt_a', 3))
  streams.begin(1, frame('evt_b', 4))
  hub.begin(2, frame('evt_c', 5))
  streams.failed(1, { message: 'no' })
  hub.reply(2, '{}')
  const steps = new FlightReader(memory)
    .steps()
    .map(({ kind, id, subject, endedMs, failed }) => [kind, id, subject, endedMs !== 0, failed])
  assert.deepEqual(steps, [
    [STEP_EVENT, 'a', 3, false, false],
    [STEP_STREAM_EVENT, 'b', 4, true, true],
    [STEP_EVENT, 'c', 5, true, false],
  ])
  hub.delivered(1)
  assert.deepEqual(answers, ['streams failed 1 no', 'hub reply 2 {}', 'hub delivered 1'])
})
