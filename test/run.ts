import { readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { forgetWritten, stripAhead } from '../src/preload/typescript/strip-ahead.cjs'
import { chooseLibrary } from '../src/primary/http/listening.ts'
import { shareBuild } from './support/built-package.ts'
import { CONTRACT, SHORT_CONTRACT } from './support/runner/contract.ts'
import { chosenFiles, entriesOf, TIERS } from './support/runner/entries.ts'
import { Report } from './support/runner/report.ts'
import { sharePostgres } from './support/runner/shared-postgres.ts'
import { serversNeededBy } from './support/servers/needed.ts'
import { SERVERS } from './support/servers/programs.ts'
import { PROVIDED_VARIABLE, provideProgram } from './support/servers/provide.ts'

/**
 * `npm test`: test/unit, test/claims and test/app; `npm run test:all`: test/rooms, too. `npm test -- http events`: of all places the files whose path contains a word.
 * `--name <pattern>` runs the tests whose name fits it; `--watch` those of a file again when it, or what it loads, is saved.
 * `--tier rooms` takes those of one place, `--list` prints the files, `--concurrency` is how many processes run at a time.
 * `--listener node` runs the contract of the listener on that one, or what else is named; `--short` runs a part of it.
 * `--costs-to` names a file that gets the time and the processor time of every file, the dearest first.
 * `--failed-to` names a file that gets the paths of the files that failed, when they are few.
 */
const here = fileURLToPath(new URL('.', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean' },
    listener: { type: 'string' },
    short: { type: 'boolean' },
    tier: { type: 'string' },
    name: { type: 'string', multiple: true },
    watch: { type: 'boolean' },
    concurrency: { type: 'string' },
    'costs-to': { type: 'string' },
    'failed-to': { type: 'string' },
  },
})
if (values.listener !== undefined && !['uws', 'node'].includes(values.listener)) {
  console.error(`There is no listener ${values.listener}: uws, node`)
  process.exit(1)
}
if (values.tier !== undefined && !Object.hasOwn(TIERS, values.tier)) {
  console.error(`There is no tier ${values.tier}: ${Object.keys(TIERS).join(', ')}`)
  process.exit(1)
}
const contract = values.short ? SHORT_CONTRACT : CONTRACT
const words = values.listener !== undefined && positionals.length === 0 ? contract : positionals
/** More files with a failure than this are no accident. */
const FAILED_MAX = 5
/** A process that has not ended by then has failed: far longer than any room takes on a busy machine. */
const PROCESS_TIMEOUT_MS = 3_600_000
/** Most processes wait half of the time: with two more than cores, a seventh of the cores' time was left. */
const concurrency = Number(values.concurrency ?? availableParallelism() + 4)
const usual = values.watch ? 'watch' : 'test'
const files = chosenFiles(TIERS[values.tier ?? (words.length === 0 ? usual : 'all')]!, words)
if (files.length === 0) {
  console.error(words.length === 0 ? 'There are no tests' : `No test file matches ${words.join(', ')}`)
  process.exit(1)
}
if (values.list) {
  for (const file of files) console.log(file)
  process.exit()
}

/** Every TypeScript file of the project. */
function sources(): string[] {
  return ['src', 'workers', 'domains', 'bench', 'test']
    .map((folder) => join(here, '..', folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
    .filter((path) => path.endsWith('.ts') && !path.includes('node_modules'))
}

/** The tests know what node:http does otherwise: they are told where it is what `auto` takes. */
async function setListener(): Promise<void> {
  if (values.listener !== undefined) process.env.HTTP_LISTENER = values.listener
  if (!['', 'auto', undefined].includes(process.env.HTTP_LISTENER)) return
  const { missing } = await chooseLibrary('auto')
  if (missing === null) return
  console.log(`The listener is node:http: uWebSockets.js does not load here, ${missing}`)
  process.env.HTTP_LISTENER = 'node'
}

/** Once, and before any test's time counts. @returns what is not to be had, each with the one line that mends it */
async function provideServers(): Promise<string[]> {
  const missing: string[] = []
  for (const server of serversNeededBy(files)) {
    const { binary, command } = SERVERS[server]
    let why = 'it is not installed'
    const program = await provideProgram(server).catch((error: Error) => {
      why = error.message
    })
    const isFatal = process.env.CI === 'true'
    if (!program) missing.push(`without ${binary} its tests ${isFatal ? 'fail' : 'are skipped'} (${why}): ${command}`)
  }
  process.env[PROVIDED_VARIABLE] = 'true'
  return missing
}

/** Runs on until it is stopped: each file in a process of its own, again whenever it or what it loads is saved. */
function watch(testNamePatterns: string[] | undefined, signal: AbortSignal): void {
  run({ files, watch: true, testNamePatterns, signal }).compose(new spec()).pipe(process.stdout)
}

async function main(): Promise<void> {
  forgetWritten()
  await stripAhead(sources())
  const missing = await provideServers()
  for (const line of missing) console.log(line)
  await setListener()
  // What is to be fetched has been, and Node reads these certificates at the start of each process: 0.045 s of processor time.
  delete process.env.NODE_EXTRA_CA_CERTS
  // Set where a test starts this: node:test would run no file.
  delete process.env.NODE_TEST_CONTEXT

  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => abort.abort())
  const testNamePatterns = values.name
  if (values.watch) return watch(testNamePatterns, abort.signal)

  const { beside, alone } = entriesOf(files, availableParallelism())
  const report = new Report(beside.length + alone.length)
  const forgetBuild = shareBuild()
  const endPostgres = await sharePostgres(files)
  const options = { timeout: PROCESS_TIMEOUT_MS, signal: abort.signal, testNamePatterns }
  for (const [entries, atOnce] of [
    [beside, concurrency],
    [alone, 1],
  ] as const) {
    if (entries.length === 0 || abort.signal.aborted) continue
    await report.add(run({ ...options, files: entries.map(({ path }) => path), concurrency: atOnce }), entries)
  }
  await endPostgres()
  forgetBuild()
  await report.end(missing)
  if (values['costs-to'] !== undefined) writeFileSync(values['costs-to'], report.costs)
  if (values['failed-to'] !== undefined && report.failed.size <= FAILED_MAX && !abort.signal.aborted) {
    const paths = [...report.failed].map((file) => `${relative(here, file)}\n`)
    writeFileSync(values['failed-to'], paths.join(''))
  }
  process.exit(report.hasFailed || abort.signal.aborted ? 1 : 0)
}

void main()
