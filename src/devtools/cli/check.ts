// The commands `lint` and `check`.
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { CommandError, UsageFault } from '../../core/config/command-line.ts'
import { loadSettings } from '../../core/config/load.ts'
import { messageOf } from '../../core/errors/description.ts'
import { ownManifest } from '../../core/modules/optional-package.ts'
import { readText } from '../../preload/text-file.cjs'
import {
  type BaselineEntry,
  baselineOf,
  baselineText,
  compareWithBaseline,
  describe,
  parseBaseline,
  reportText,
} from '../lint/report.ts'
import { sourceFacts } from '../lint/source-reader.ts'
import { command } from './command.ts'

const LINT_USAGE = `Usage: npm run lint:architecture -- [--json] [--baseline <file>] [--update-baseline | --accept]
  --json              prints the report as JSON
  --baseline <file>   the accepted findings; .lint-baseline.json when left out
  --update-baseline   removes from the baseline what is no longer found; never adds
  --accept            adds all current findings to the baseline, and prints them`
const BASELINE = '.lint-baseline.json'

const CHECK_USAGE = `Usage: heddle check
  types (tsconfig.json), Biome where it is installed (biome.json), and the architecture`

/** Prints the report of `/system/lint`. Ends with 1 for an error that is not in the baseline, or for a baseline entry that is no longer found. */
export const lint = command(
  LINT_USAGE,
  {
    json: { type: 'boolean', default: false },
    baseline: { type: 'string', default: BASELINE },
    'update-baseline': { type: 'boolean', default: false },
    accept: { type: 'boolean', default: false },
  },
  async ({ json, baseline, 'update-baseline': shrinks, accept }) => {
    if (accept && shrinks)
      throw new UsageFault(`Use either --accept, which adds, or --update-baseline, which removes\n${LINT_USAGE}`)
    process.exitCode = await printReport(baseline, { json, shrinks, accept })
  },
  false,
)

async function printReport(
  file: string,
  { json = false, shrinks = false, accept = false }: { json?: boolean; shrinks?: boolean; accept?: boolean } = {},
): Promise<number> {
  const { settings } = loadSettings()
  const { findings, checked } = await sourceFacts(settings.domainsDir, settings.toolsDir)
  let baseline = readBaseline(file)
  if (shrinks && existsSync(file)) {
    baseline = compareWithBaseline(findings, baseline).shrunk
    writeFileSync(file, baselineText(baseline))
  }
  if (accept) {
    const added = baselineOf(compareWithBaseline(findings, baseline).fresh)
    if (added.length > 0) {
      baseline = baselineOf(findings)
      writeFileSync(file, baselineText(baseline))
      const lines = added.map((entry) => `  ${describe(entry)}`).join('\n')
      console.error(`Warning: accepted in ${file}, and no longer reported from now on:\n${lines}`)
    }
  }
  const comparison = compareWithBaseline(findings, baseline)
  const { fresh, accepted, stale } = comparison
  const ok = stale.length === 0 && fresh.every(({ severity }) => severity !== 'error')
  if (json) console.log(JSON.stringify({ ok, findings: fresh, accepted, stale, checked }, null, 2))
  else console.log(reportText(checked, comparison, file, process.stdout.hasColors?.() ?? false))
  return ok ? 0 : 1
}

/** The accepted findings; none without a file. */
function readBaseline(file: string): BaselineEntry[] {
  if (!existsSync(file)) return []
  try {
    return parseBaseline(readText(file))
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${messageOf(error)}`)
  }
}

/** Each check, also after one that failed. Where something is missing for them, the one command that installs it. */
export const check = command(CHECK_USAGE, {}, async (_, words) => {
  if (words.length > 0) throw new UsageFault(`check takes no arguments: remove ${words.join(' ')}`)
  const types = programOf('typescript/package.json', 'bin/tsc')
  const linter = programOf('@biomejs/biome/package.json', 'bin/biome')
  // Of its package.json nobody may know.
  const parser = programOf('oxc-parser')
  if (types === null || parser === null) {
    const { devDependencies, peerDependencies } = ownManifest()
    const all = { typescript: types, '@biomejs/biome': linter, 'oxc-parser': parser }
    const missing = Object.entries(all).flatMap(([name, program]) => (program === null ? [name] : []))
    const names = missing.map((name) => `${name}@${devDependencies[name] ?? peerDependencies[name]}`)
    throw new UsageFault(
      `heddle check needs ${missing.join(', ')}, not installed here: npm install --save-dev ${names.join(' ')}`,
    )
  }
  const checks = [
    { name: 'TypeScript', program: types, args: ['--noEmit'], needs: 'tsconfig.json' },
    { name: 'Biome', program: linter, args: ['check', '--error-on-warnings', '.'], needs: 'biome.json' },
  ]
  let status = 0
  for (const { name, program, args, needs } of checks) {
    if (program === null || !existsSync(needs))
      console.error(`${name} is not installed here, or has no ${needs}: left out`)
    else status = (spawnSync(process.execPath, [program, ...args], { stdio: 'inherit' }).status ?? 1) || status
  }
  process.exitCode = (await printReport(BASELINE)) || status
})

/** A program of a package of the application: its place beside another file of it, or that file. */
function programOf(beside: string, file?: string): string | null {
  try {
    const found = createRequire(resolve('package.json')).resolve(beside)
    return file === undefined ? found : join(dirname(found), file)
  } catch {
    return null
  }
}
