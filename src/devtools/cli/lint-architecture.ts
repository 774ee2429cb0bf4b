import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { EXIT_USAGE, parseFlags, UsageFault } from '../../core/config/arguments.ts'
import { ConfigFaults, EXIT_CONFIG, loadSettings } from '../../core/config/load.ts'
import { messageOf } from '../../core/errors/description.ts'
import { isPackageMissing } from '../../core/errors/misconfigured.ts'
import { CommandError } from '../command-error.ts'
import { type BaselineEntry, baselineOf, baselineText, compareWithBaseline, parseBaseline } from '../lint/baseline.ts'
import { describe, reportText } from '../lint/report-text.ts'
import { sourceFacts } from '../lint/source-reader.ts'

const USAGE = `Usage: npm run lint:architecture -- [--json] [--baseline <file>] [--update-baseline | --accept]
  --json              prints the report as JSON
  --baseline <file>   the accepted findings; .lint-baseline.json when left out
  --update-baseline   removes from the baseline what is no longer found; never adds
  --accept            adds all current findings to the baseline, and prints them`

/** Prints the report of `/system/lint`. Exits with 1 for an error that is not in the baseline, or for a baseline entry that is no longer found. */
async function main(): Promise<void> {
  try {
    const options = readArguments()
    const { settings } = loadSettings()
    const { findings, checked } = await sourceFacts(settings.domainsDir, settings.toolsDir)
    let baseline = readBaseline(options.baseline)
    if (options['update-baseline'] && existsSync(options.baseline)) {
      baseline = shrunk(baseline, compareWithBaseline(findings, baseline).stale)
      writeFileSync(options.baseline, baselineText(baseline))
    }
    if (options.accept) {
      const added = baselineOf(compareWithBaseline(findings, baseline).fresh)
      if (added.length > 0) {
        baseline = baselineOf(findings)
        writeFileSync(options.baseline, baselineText(baseline))
        const lines = added.map((entry) => `  ${describe(entry)}`).join('\n')
        console.error(`Warning: accepted in ${options.baseline}, and no longer reported from now on:\n${lines}`)
      }
    }
    const comparison = compareWithBaseline(findings, baseline)
    const { fresh, accepted, stale } = comparison
    const ok = stale.length === 0 && fresh.every(({ severity }) => severity !== 'error')
    if (options.json) console.log(JSON.stringify({ ok, findings: fresh, accepted, stale, checked }, null, 2))
    else console.log(reportText(checked, comparison, options.baseline, process.stdout.hasColors?.() ?? false))
    process.exitCode = ok ? 0 : 1
  } catch (error) {
    const isUsage = error instanceof UsageFault || isPackageMissing(error)
    if (!(error instanceof ConfigFaults) && !isUsage && !(error instanceof CommandError)) throw error
    console.error(messageOf(error))
    process.exitCode = isUsage ? EXIT_USAGE : error instanceof CommandError ? 1 : EXIT_CONFIG
  }
}

function readArguments() {
  const { values } = parseFlags(USAGE, {
    options: {
      json: { type: 'boolean', default: false },
      baseline: { type: 'string', default: '.lint-baseline.json' },
      'update-baseline': { type: 'boolean', default: false },
      accept: { type: 'boolean', default: false },
    },
  })
  if (!(values.accept && values['update-baseline'])) return values
  throw new UsageFault(`Use either --accept, which adds, or --update-baseline, which removes\n${USAGE}`)
}

/** The accepted findings; none without a file. */
function readBaseline(file: string): BaselineEntry[] {
  if (!existsSync(file)) return []
  try {
    return parseBaseline(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${messageOf(error)}`)
  }
}

function shrunk(baseline: readonly BaselineEntry[], stale: readonly BaselineEntry[]): BaselineEntry[] {
  return baseline.flatMap((entry) => {
    const gone = stale.find(({ rule, file, message }) => {
      return rule === entry.rule && file === entry.file && message === entry.message
    })
    const count = entry.count - (gone?.count ?? 0)
    return count > 0 ? [{ ...entry, count }] : []
  })
}

void main()
