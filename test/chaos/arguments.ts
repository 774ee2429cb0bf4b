import { parseArgs } from 'node:util'

export const LOGS = ['sqlite', 'postgres', 'redis'] as const

export interface ChaosArguments {
  seconds: number
  seed: number
  lanes: number
  /** Seconds between two faults of lanes, on average. */
  gap: number
  /** The whole process is killed instead of lanes. */
  killProcess: boolean
  /** Kills of the process, at most. */
  kills: number
  /** Where the events of the processes that are killed are: a file, or a server that two of them share and that is killed, too. */
  log: (typeof LOGS)[number]
  /** Where the report goes as JSON; null: nowhere. */
  json: string | null
}

export const USAGE = `npm run test:chaos -- [--seconds N] [--seed N] [--lanes N] [--gap N] [--json file]
npm run test:chaos -- --kill-process [--seconds N] [--seed N] [--lanes N] [--kills N] [--log sqlite|postgres|redis] [--json file]
  --seconds N   how long clients write while faults happen (default 120; with --kill-process 60)
  --seed N      what the faults and the clients follow from (default: a new one, printed)
  --lanes N     lanes of the runtime (default 2)
  --gap N       seconds between two faults of lanes, on average (default 3.5)
  --kill-process  kills the whole process, and its guardian, instead of lanes
  --log L       where events are: sqlite, or two processes on one server, which is killed, too: postgres, redis (default sqlite)
  --kills N     ends after so many of those, if that is sooner
  --json file   writes the report there`

/** @throws for an unknown option or a number out of range */
export function parseArguments(argv: readonly string[]): ChaosArguments {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      'kill-process': { type: 'boolean', default: false },
      kills: { type: 'string', default: '1000' },
      log: { type: 'string', default: 'sqlite' },
      seconds: { type: 'string' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
      lanes: { type: 'string', default: '2' },
      gap: { type: 'string', default: '3.5' },
      json: { type: 'string' },
    },
  })
  return {
    killProcess: values['kill-process'],
    kills: wholeInRange('kills', values.kills, 1, 1000),
    log: logOf(values.log),
    seconds: inRange('seconds', values.seconds ?? (values['kill-process'] ? '60' : '120'), 5, 3600),
    seed: wholeInRange('seed', values.seed, 0, 2 ** 32 - 1),
    lanes: wholeInRange('lanes', values.lanes, 1, 64),
    gap: inRange('gap', values.gap, 0.5, 600),
    json: values.json ?? null,
  }
}

function logOf(name: string): ChaosArguments['log'] {
  const log = LOGS.find((each) => each === name)
  if (log === undefined) throw new Error(`--log must be ${LOGS.join(', ')}, not ${name}`)
  return log
}

function inRange(name: string, text: string, min: number, max: number): number {
  const value = text === '' ? Number.NaN : Number(text)
  if (!(value >= min && value <= max)) throw new Error(`--${name} must be ${min} to ${max}, not ${text}`)
  return value
}

function wholeInRange(name: string, text: string, min: number, max: number): number {
  const value = inRange(name, text, min, max)
  if (!Number.isInteger(value)) throw new Error(`--${name} must be a whole number, not ${text}`)
  return value
}
