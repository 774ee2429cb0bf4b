import { FlightRecorder, STEP_REQUEST } from '../../../src/transport/memory/flight-recorder.ts'

/** Writes one step and never comes back. */
export default function fly(memory: SharedArrayBuffer): void {
  new FlightRecorder(memory).begin(STEP_REQUEST, 42, 5, 'the-last', 123)
  for (;;);
}
