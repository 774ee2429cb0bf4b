import { readFileSync } from 'node:fs'
import { FlightFile, FlightRecorder, STEP_REQUEST } from '../../../src/transport/memory/flight-recorder.ts'

export interface Task {
  memory: SharedArrayBuffer
  path: string
  steps: number
}

/** A lane that begins one step after another, and looks whether each stands in the file from then on. @returns those that do not */
export default function beginSteps({ memory, path, steps }: Task): number[] {
  const recorder = new FlightRecorder(memory, new FlightFile(path, Buffer.from(memory)))
  const lost: number[] = []
  for (let n = 0; n < steps; n++) {
    // Times that differ: of several steps in a millisecond it writes the first alone.
    recorder.begin(STEP_REQUEST, n, -1, '', n + 1)
    // Several times: a write of the primary that has begun before may end later. The first word counts the steps.
    const counts = Array.from({ length: 5 }, () => readFileSync(path).readInt32LE(0))
    if (counts.some((count) => count !== n + 1)) lost.push(n)
  }
  return lost
}
