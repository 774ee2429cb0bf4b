import type { ProcessCounter } from '../../contracts/registry.ts'
import type { DroppedLetters } from '../events/dropped-letters.ts'
import type { FramingFaults } from '../http/framing-faults.ts'
import type { LogOutput } from '../logging/log-output.ts'

/** What the primary counts, and nothing else tells. */
export function processCounters(log: LogOutput, framing: FramingFaults, letters: DroppedLetters): ProcessCounter[] {
  return [
    {
      name: 'heddle_log_records_dropped_total',
      kind: 'counter',
      help: 'Log records that were dropped because nobody read standard output.',
      samples: Object.entries(log.droppedTotal).map(([level, value]) => ({ labels: { level }, value })),
    },
    {
      name: 'heddle_log_buffer_bytes',
      kind: 'gauge',
      help: 'Log lines that wait for the reader of standard output.',
      samples: [{ labels: {}, value: log.waitingBytes }],
    },
    {
      name: 'heddle_dead_letters_dropped_total',
      kind: 'counter',
      help: 'Dead letters that were dropped for newer ones.',
      samples: [{ labels: {}, value: letters.count }],
    },
    {
      name: 'heddle_framing_faults_total',
      kind: 'counter',
      help: 'Connections that were closed because the end of a request was not certain.',
      samples: framing.totals().map(([reason, value]) => ({ labels: { reason }, value })),
    },
  ]
}
