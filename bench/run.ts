// npm run bench: runs the cases, prints the table, and writes the figures to bench/results.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EXIT_USAGE, parseFlags, UsageFault, unknownName } from '../src/core/config/command-line.ts'
import { type BenchCase, type CaseResult, isMet, LISTENERS } from './bench-case.ts'
import { backlog } from './cases/backlog.ts'
import { boot } from './cases/boot.ts'
import { bystander } from './cases/bystander.ts'
import { cpu } from './cases/cpu.ts'
import { durable } from './cases/durable.ts'
import { elastic } from './cases/elastic.ts'
import { events } from './cases/events.ts'
import { hello } from './cases/hello.ts'
import { history } from './cases/history.ts'
import { keyed } from './cases/keyed.ts'
import { lanes } from './cases/lanes.ts'
import { mount } from './cases/mount.ts'
import { overload } from './cases/overload.ts'
import { peers } from './cases/peers.ts'
import { reload } from './cases/reload.ts'
import { steps } from './cases/steps.ts'
import { toolcall } from './cases/toolcall.ts'
import { tracing } from './cases/tracing.ts'
import { work } from './cases/work.ts'
import { write } from './cases/write.ts'
import { LoadGenerator } from './load/generator.ts'
import { describeMachine } from './machine.ts'
import { ProfileFolder } from './profiles.ts'
import { Progress } from './progress.ts'
import { formatChanges, formatTable, readRun } from './report.ts'

const CASES: readonly BenchCase[] = [
  hello,
  mount,
  peers,
  write,
  cpu,
  toolcall,
  steps,
  events,
  durable,
  keyed,
  work,
  backlog,
  boot,
  bystander,
  overload,
  reload,
  elastic,
  tracing,
  history,
  lanes,
]
const RESULTS = fileURLToPath(new URL('./results', import.meta.url))

const USAGE = `npm run bench -- [names] [--profile] [--seconds N] [--rounds N] [--baselines] [--listener auto|uws|node] [--compare FILE] [--list]
  names          cases to run; all when none is given
  --profile      leave CPU profiles of the primary and of each lane in bench/results (one round; figures are then not comparable)
  --seconds N    length of a measured window (default 3)
  --rounds N     how often every side is measured, in turn (default 5, at least 3)
  --baselines    run only the other side of the comparisons
  --listener L   HTTP_LISTENER of the runtime (default auto); hello compares node with bare node:http, and has no targets for it
  --compare FILE what has changed since the run that wrote these results
  --list         print the cases`

/** @throws UsageFault for an unknown option or a number out of range */
function parseArguments(argv: readonly string[]) {
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
    /** Of the cases to run; empty: all. */
    names: positionals,
    profile: values.profile,
    list: values.list,
    baselinesOnly: values.baselines,
    /** What the runtime listens with. */
    listener,
    measureMs: seconds * 1000,
    rounds,
    /** A file of results; null: none. */
    compareTo: values.compare ?? null,
  }
}

type Outcome = { name: string; title: string } & ({ result: CaseResult } | { error: string })

async function main(): Promise<void> {
  const options = parseArguments(process.argv.slice(2))
  if (options.list) {
    for (const { name, title } of CASES) console.log(`${name.padEnd(10)}${title}`)
    return
  }
  const names = CASES.map(({ name }) => name)
  const unknown = options.names.find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw unknownName(`There is no case ${unknown}`, unknown, names, `Cases: ${names.join(', ')}\n\n${USAGE}`)

  const before = options.compareTo === null ? null : readRun(options.compareTo)

  // Every server inherits it.
  process.env.HTTP_LISTENER = options.listener
  const machine = describeMachine()
  console.log(
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}, Node ${machine.node}`,
  )
  console.log(
    Object.entries(machine.packages)
      .map((entry) => entry.join(' '))
      .join(', '),
  )

  const startedAt = new Date().toISOString()
  const outcomes: Outcome[] = []
  const progress = new Progress()
  const wanted = CASES.filter(({ name }) => options.names.length === 0 || options.names.includes(name))
  for (const [n, entry] of wanted.entries()) {
    console.log(`\n${entry.name}: ${entry.title}`)
    progress.begin(entry.name, n + 1, wanted.length)
    outcomes.push(await runCase(entry, options, progress))
    progress.end()
  }
  const rows = outcomes.flatMap((outcome) => ('result' in outcome ? outcome.result.rows : []))
  console.log(`\n${formatTable(rows)}`)
  if (before !== null) {
    const { cpu, node } = before.machine
    const by = before.command === undefined ? '' : `, ${before.command}`
    console.log(`\nSince ${before.startedAt} (${cpu}, Node ${node}${by}):\n${formatChanges(before.rows, rows)}`)
  }
  if (options.profile) console.log('Measured while profiling: do not compare these figures with others.')
  for (const outcome of outcomes)
    if ('error' in outcome) console.log(`! ${outcome.name} failed to run: ${outcome.error}`)

  const report = {
    startedAt,
    command: ['npm run bench --', ...process.argv.slice(2)].join(' '),
    options,
    machine,
    rows: rows.map((row) => ({ ...row, met: isMet(row) })),
    cases: outcomes,
  }
  console.log(`\nFigures: ${saveReport(report, startedAt)}`)
  if (outcomes.some((outcome) => 'error' in outcome)) process.exitCode = 1
}

async function runCase(
  entry: BenchCase,
  options: ReturnType<typeof parseArguments>,
  progress: Progress,
): Promise<Outcome> {
  const profiles = options.profile ? new ProfileFolder(RESULTS) : undefined
  const load = new LoadGenerator()
  const { name, title } = entry
  try {
    const result = await entry.run({
      measureMs: options.measureMs,
      // One process per side: a profile of each thread, not one per round.
      rounds: options.profile ? 1 : options.rounds,
      baselinesOnly: options.baselinesOnly,
      listener: options.listener,
      load,
      profileDir: (server) => profiles?.directoryFor(server),
      say: (text) => progress.say(text),
      step: (what, share) => progress.step(what, share),
    })
    return { name, title, result }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    progress.say(`failed: ${text}`)
    return { name, title, error: text }
  } finally {
    await load.stop()
    for (const path of profiles?.collect(name) ?? []) progress.say(`profile ${path}`)
  }
}

function saveReport(report: object, startedAt: string): string {
  mkdirSync(RESULTS, { recursive: true })
  const path = join(RESULTS, `${startedAt.replaceAll(':', '-')}.json`)
  const text = `${JSON.stringify(report, null, 2)}\n`
  for (const file of [path, join(RESULTS, 'latest.json')]) writeFileSync(file, text)
  return path
}

// Lets 'exit' handlers run when this process is interrupted: they end the servers.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => process.exit(code))

main().catch((error: unknown) => {
  const isUsage = error instanceof UsageFault
  console.error(isUsage ? error.message : error)
  process.exitCode = isUsage ? EXIT_USAGE : 1
})
