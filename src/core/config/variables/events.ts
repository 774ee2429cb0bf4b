import { DAY_MS, type VariableRow } from './row.ts'

/** Events and jobs. */
export const EVENT_VARIABLES = {
  EVENT_BUS_DRIVER: {
    type: 'choice',
    choices: ['database', 'in_process', 'keyvalue_streams'],
    default: 'database',
    effect:
      'Transport of events: in the database, where they outlive the process; within this process, which forgets them at its end; or streams of the key-value store that all replicas share.',
  },
  EVENT_BUS_MAX_QUEUE: {
    type: 'integer',
    min: 1,
    max: 10_000_000,
    default: 100_000,
    unit: 'events',
    effect: 'Most events that wait in process; above it, `publish` rejects with EVENT_BUS_FULL.',
  },
  EVENT_BUS_MAX_STORED: {
    type: 'integer',
    min: 1,
    max: 100_000_000,
    default: 1_000_000,
    unit: 'events',
    effect: 'Most events that the database keeps; above it, `publish` rejects with EVENT_BUS_FULL.',
  },
  EVENT_BUS_INBOX_KEEP_MS: {
    type: 'integer',
    min: 1000,
    max: 366 * DAY_MS,
    default: 7 * DAY_MS,
    unit: 'ms',
    effect:
      'How long it is known that a transactional subscriber has handled an event, for deliveries that come again: longer than the broker, or what it waits for, is ever away.',
  },
  EVENT_BUS_MAX_NAMES: {
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1000,
    unit: 'event names',
    effect: 'Different events that one plugin publishes; `publish` of a further name rejects with EVENT_NAMES_LIMIT.',
  },
  EVENT_BUS_MAX_SUBSCRIPTIONS: {
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1000,
    unit: 'subscriptions',
    effect: 'Subscriptions of one plugin in one thread; a further one throws EVENT_SUBSCRIPTIONS_LIMIT.',
  },
  EVENT_BUS_MAX_DEAD_BYTES: {
    type: 'integer',
    min: 1_048_576,
    max: 68_719_476_736,
    default: 67_108_864,
    unit: 'bytes',
    effect:
      'What the dead letters take, in this process or in the store; beyond it the oldest are dropped, and counted.',
  },
  EVENT_BUS_CLAIM_IDLE_MS: {
    type: 'integer',
    min: 50,
    max: DAY_MS,
    default: 60_000,
    unit: 'ms',
    effect: 'Stream driver: another consumer claims a delivery that has been idle for longer.',
  },
  EVENT_BUS_STREAM_MAXLEN: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'entries',
    effect: 'Stream driver: approximate limit per stream; unset: unread entries are never trimmed.',
  },
  SCHEDULER_ENABLED: {
    type: 'boolean',
    default: ({ nodeAppInstance }) => !nodeAppInstance,
    effect:
      'Jobs may run in this process: of all with true that share a PostgreSQL database one is elected. Without a database set it on one only.',
  },
} as const satisfies Record<string, VariableRow>
