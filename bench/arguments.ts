import { parseFlags, UsageFault } from '../src/core/config/command-line.ts'
import { LISTENERS, type Listener } from './bench-case.ts'

export interface BenchArguments {
  /** Names of the cases to run; empty: all. */
  names: string[]
  profile: boolean
  list: boolean
  baselinesOnly: boolean
  /** What the runtime listens with. */
  listener: Listener
  measureMs: number
  rounds: number
  /** A file of results; null: none. */
  compareTo: string | null
}

export const USAGE = `npm run bench -- [names] [--profile] [--seconds N] [--rounds N] [--baselines] [--listener auto|uws|node] [--compare FILE] [--list]
  names          cases to run; all when none is given
  --profile      leave CPU profiles of the primary and of each lane in bench/results (one round; figures are then not comparable)
  --seconds N    length of a measured window (default 3)
  --rounds N     how often every side is measured, in turn (default 5, at least 3)
  --baselines    run only the other side of the comparisons
  --listener L   HTTP_LISTENER of the runtime (default auto); hello compares node with bare node:http, and has no targets for it
  --compare FILE what has changed since the run that wrote these results
  --list         print the cases`

/** @throws UsageFault for an unknown option or a number out of range */
export function parseArguments(argv: readonly string[]): BenchArguments {
  const { values, positionals } = parseFlags(USAGE, {
    args: [...argv],
    allowPositionals: true,
    options: {
      profile: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      baselines: { type: 'boolean', default: false },
      listener: { type: 'string', default: 'auto' },
      compare: { type: 'string' },
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
    },
  })
  const seconds = Number(values.seconds)
  const rounds = Number(values.rounds)
  if (!(seconds >= 0.1 && seconds <= 600))
    throw new UsageFault(`--seconds must be 0.1 to 600, not ${values.seconds}\n\n${USAGE}`)
  if (!(Number.isInteger(rounds) && rounds >= 3 && rounds <= 100))
    throw new UsageFault(`--rounds must be 3 to 100, not ${values.rounds}\n\n${USAGE}`)
  const listener = LISTENERS.find((name) => name === values.listener)
  if (listener === undefined)
    throw new UsageFault(`--listener must be ${LISTENERS.join(', ')}, not ${values.listener}\n\n${USAGE}`)
  return {
    names: positionals,
    profile: values.profile,
    list: values.list,
    baselinesOnly: values.baselines,
    listener,
    measureMs: seconds * 1000,
    rounds,
    compareTo: values.compare ?? null,
  }
}
