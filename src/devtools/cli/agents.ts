import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { EXIT_USAGE, parseFlags, UsageFault } from '../../core/config/arguments.ts'
import { ConfigFaults, EXIT_CONFIG, loadSettings } from '../../core/config/load.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { isPackageMissing } from '../../core/errors/misconfigured.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'
import { CommandError } from '../command-error.ts'
import { withAgentsPart } from '../scaffolding/agents.ts'

const USAGE = `Usage: npm run agents -- [--check]
  writes into AGENTS.md which domains, plugins, routes, events, tools and commands there are; the rest of the file stays
  --check  writes nothing; exit code 1 when it is not up to date`

async function main(): Promise<void> {
  try {
    const { values } = parseFlags(USAGE, {
      options: { check: { type: 'boolean', default: false } },
    })
    needPackages('heddle agents', OPTIONAL_PACKAGES.lint)
    const file = resolve('AGENTS.md')
    const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const { domainsDir, toolsDir, tools } = loadSettings().settings
    const text = await withAgentsPart(before, { folder: process.cwd(), domainsDirs: domainsDir, toolsDir, tools })
    const isCurrent = text === before
    if (values.check && !isCurrent) throw new CommandError('AGENTS.md is not up to date: npm run agents')
    if (!isCurrent) writeFileSync(file, text)
    console.log(`AGENTS.md ${isCurrent ? 'is up to date' : 'is written'}`)
  } catch (error) {
    const isUsage = error instanceof UsageFault || isPackageMissing(error)
    const isConfig = error instanceof ConfigFaults || (error instanceof HeddleError && error.code === 'CONFIG_INVALID')
    if (!isUsage && !isConfig && !(error instanceof CommandError)) throw error
    console.error(messageOf(error))
    process.exitCode = isConfig ? EXIT_CONFIG : isUsage ? EXIT_USAGE : 1
  }
}

void main()
