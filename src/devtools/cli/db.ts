import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { EXIT_USAGE, parseFlags } from '../../core/config/arguments.ts'
import { ConfigFaults, EXIT_CONFIG, loadSettings } from '../../core/config/load.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { isPackageMissing } from '../../core/errors/misconfigured.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { CommandError } from '../command-error.ts'
import { onScratchDatabase } from '../database/scratch.ts'
import { readTables } from '../database/table-types.ts'
import { typesText } from '../database/types-text.ts'

const USAGE = `Usage: npm run db -- types [--check] [--out <file>]
  types         writes the types of all tables, from a scratch database to which the migrations are applied
  --check       writes nothing; exit code 1 when the file is not up to date
  --out <file>  db-types.ts in the first folder of DOMAINS_DIR when left out`

async function main(): Promise<void> {
  try {
    const { check, out } = readArguments()
    const { settings } = loadSettings()
    const file = resolve(out ?? join(settings.domainsDir[0]!, 'db-types.ts'))
    const text = typesText(await onScratchDatabase(settings, readTables))
    const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text
    if (!check) writeFileSync(file, text)
    else if (!isCurrent)
      throw new CommandError(`${shown(file)} is not up to date: npm run db -- types, or heddle db types`)
    console.log(`${shown(file)} ${check || isCurrent ? 'is up to date' : 'is written'}`)
  } catch (error) {
    const isExplained = error instanceof HeddleError || error instanceof ConfigFaults || error instanceof CommandError
    if (!isExplained) throw error
    console.error(messageOf(error))
    process.exitCode = error instanceof ConfigFaults ? EXIT_CONFIG : isPackageMissing(error) ? EXIT_USAGE : 1
  }
}

function readArguments(): { check: boolean; out: string | undefined } {
  try {
    const options = { check: { type: 'boolean', default: false }, out: { type: 'string' } } as const
    const { values, positionals } = parseFlags(USAGE, { allowPositionals: true, options })
    if (positionals.length === 1 && positionals[0] === 'types') return { check: values.check, out: values.out }
    console.error(USAGE)
  } catch (error) {
    console.error(messageOf(error))
  }
  process.exit(EXIT_USAGE)
}

void main()
