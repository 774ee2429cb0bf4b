import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Builtins } from '../../../src/lane/builtins.ts'
import { RingAcknowledgements } from '../../../src/lane/ring-ports.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import {
  createFlightRecorder,
  FlightReader,
  FlightRecorder,
  STEP_EVENT,
} from '../../../src/transport/memory/flight-recorder.ts'
import type { Outbox } from '../../../src/transport/rings/outbox.ts'

test('each delivery has a step, which ends with its answer, and the answer goes on', () => {
  const memory = createFlightRecorder()
  const answers: string[] = []
  const outbox = { sendText: (_: number, id: number, text: string) => void answers.push(`${id} ${text}`) } as Outbox
  const deliveries = new RingAcknowledgements(outbox, new FlightRecorder(memory), new Builtins())
  const frame = (id: string, subscriber: number) => ({ id, subscriber }) as EventFrame
  deliveries.begin(1, frame('evt_a', 3))
  deliveries.begin(2, frame('evt_b', 4))
  deliveries.begin(3, frame('evt_c', 5))
  deliveries.failed(2, { message: 'no' })
  deliveries.reply(3, '{}')
  const steps = new FlightReader(memory)
    .steps()
    .map(({ kind, id, subject, endedMs, failed }) => [kind, id, subject, endedMs !== 0, failed])
  assert.deepEqual(steps, [
    [STEP_EVENT, 'a', 3, false, false],
    [STEP_EVENT, 'b', 4, true, true],
    [STEP_EVENT, 'c', 5, true, false],
  ])
  assert.deepEqual(answers, ['2 {"message":"no"}', '3 {}'])
})
