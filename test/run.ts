import { readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chooseLibrary } from '../src/primary/http/library-choice.ts'
import { shareBuild } from './support/built-package.ts'
import { CONTRACT, SHORT_CONTRACT } from './support/runner/contract.ts'
import { jobsOf } from './support/runner/jobs.ts'
import { Report } from './support/runner/report.ts'
import { runJobs } from './support/runner/run-jobs.ts'
import { sharePostgres } from './support/runner/shared-postgres.ts'
import { serversNeededBy } from './support/servers/needed.ts'
import { PROVIDED_VARIABLE, provideProgram } from './support/servers/provide.ts'
import { forgetWritten, stripAhead } from './support/typescript/strip-ahead.cjs'

/**
 * `npm test`: every `*.test.ts` under test/; `npm test -- http events` only those whose path contains a word.
 * `--listener node` runs the contract of the listener on that one, or what else is named; `--short` runs a part of it.
 * `--list` prints how each would be run, `--kind together` runs those of one kind, `--concurrency` is how many processes run at a time.
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
    kind: { type: 'string' },
    concurrency: { type: 'string' },
    'costs-to': { type: 'string' },
    'failed-to': { type: 'string' },
  },
})
if (values.listener !== undefined && !['uws', 'node'].includes(values.listener)) {
  console.error(`There is no listener ${values.listener}: uws, node`)
  process.exit(1)
}
const contract = values.short ? SHORT_CONTRACT : CONTRACT
const words = values.listener !== undefined && positionals.length === 0 ? contract : positionals
/** More processes with a failure than this are no accident. */
const FAILED_MAX = 5
/** Most processes wait most of the time. */
const concurrency = Number(values.concurrency ?? availableParallelism() + 2)
const files = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules') && !name.includes('/application/'))
  .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
  .map((name) => relative(process.cwd(), join(here, name)))
  .sort()
if (files.length === 0) {
  console.error(`No test file matches ${words.join(', ')}`)
  process.exit(1)
}
const jobs = jobsOf(files, availableParallelism()).filter(({ kind }) => kind === (values.kind ?? kind))
if (values.list) {
  for (const { kind, files } of jobs) for (const file of files) console.log(kind.padEnd(10), file)
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

async function main(): Promise<void> {
  forgetWritten()
  await stripAhead(sources())
  // Once, and before any test's time counts. What is not to be had is said by the tests that are skipped for it.
  for (const server of serversNeededBy(files)) {
    await provideProgram(server).catch((error: Error) => console.error(`${server}: ${error.message}`))
  }
  process.env[PROVIDED_VARIABLE] = 'true'
  await setListener()
  // What is to be fetched has been, and Node reads these certificates at the start of each process: 0.045 s of processor time.
  delete process.env.NODE_EXTRA_CA_CERTS
  // Set where a test starts this: node:test would run no file.
  delete process.env.NODE_TEST_CONTEXT

  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => abort.abort())
  const report = new Report()
  const forgetBuild = shareBuild()
  const endPostgres = await sharePostgres(jobs.flatMap(({ files }) => files))
  await runJobs(jobs, concurrency, report, abort.signal)
  await endPostgres()
  forgetBuild()
  await report.end()
  if (values['costs-to'] !== undefined) writeFileSync(values['costs-to'], report.costs)
  if (values['failed-to'] !== undefined && report.failed.length <= FAILED_MAX && !abort.signal.aborted) {
    const paths = report.failed.flatMap(({ files }) => files.map((file) => relative(here, file)))
    writeFileSync(values['failed-to'], paths.map((path) => `${path}\n`).join(''))
  }
  process.exit(report.hasFailed || abort.signal.aborted ? 1 : 0)
}

void main()
