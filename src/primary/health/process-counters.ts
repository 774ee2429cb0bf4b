// The counters of the primary.
import type { ProcessCounter } from '../../contracts/registry.ts'
import type { Hub } from '../events/hub.ts'
import type { Listener } from '../http/listener.ts'
import type { LogOutput } from '../logging/log-output.ts'

/** What the primary counts, and nothing else tells. */
export function processCounters(
  log: LogOutput,
  { framingFaults, connectionLimit }: Listener,
  hub: Hub,
): ProcessCounter[] {
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
      samples: [{ labels: {}, value: hub.deadLetters.dropped.count }],
    },
    {
      name: 'heddle_deliveries_pending',
      kind: 'gauge',
      help: 'Deliveries of events that are accepted and not finished.',
      samples: [{ labels: {}, value: hub.pending }],
    },
    {
      name: 'heddle_framing_faults_total',
      kind: 'counter',
      help: 'Connections that were closed because the end of a request was not certain.',
      samples: framingFaults.totals().map(([reason, value]) => ({ labels: { reason }, value })),
    },
    {
      name: 'heddle_http_connections',
      kind: 'gauge',
      help: 'Connections that are open, WebSockets included.',
      samples: [{ labels: {}, value: connectionLimit.open }],
    },
    {
      name: 'heddle_http_connections_max',
      kind: 'gauge',
      help: 'Connections that may be open by the limit of descriptors.',
      samples: Number.isFinite(connectionLimit.max) ? [{ labels: {}, value: connectionLimit.max }] : [],
    },
    {
      name: 'heddle_http_accept_pauses_total',
      kind: 'counter',
      help: 'Times that no new connections were taken because that many were open.',
      samples: [{ labels: {}, value: connectionLimit.pauses }],
    },
  ]
}
