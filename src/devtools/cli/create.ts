import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { EXIT_USAGE, parseFlags, UsageFault } from '../../core/config/arguments.ts'
import { loadSettings } from '../../core/config/load.ts'
import { CommandError } from '../command-error.ts'
import { withAgentsPart } from '../scaffolding/agents.ts'
import { scaffoldApplication } from '../scaffolding/application.ts'
import { write } from '../scaffolding/writing.ts'

const USAGE = 'Usage: heddle create <folder>    writes a new application into a folder that is empty or not there'

/** Writes an application. Exits with 1 when it cannot, with 2 when the arguments are wrong. */
async function main(): Promise<void> {
  let folder: string | undefined
  try {
    const { positionals, values } = parseFlags(USAGE, {
      allowPositionals: true,
      options: { help: { type: 'boolean', short: 'h' } },
    })
    if (values.help) return console.log(USAGE)
    if (positionals.length !== 1) throw new UsageFault(`One folder is wanted\n\n${USAGE}`)
    folder = resolve(positionals[0]!)
  } catch (error) {
    if (!(error instanceof UsageFault)) throw error
    console.error(error.message)
    process.exitCode = EXIT_USAGE
    return
  }
  try {
    if (existsSync(folder) && readdirSync(folder).length > 0) throw new CommandError(`${folder} is not empty`)
    const { files, next } = scaffoldApplication(folder, basename(folder), relative('.', folder) || '.')
    write(files)
    await describe(folder)
    const written = files.map(({ path }) => `  ${relative('.', path)}`)
    console.log(['Wrote', ...written, 'Next', ...next.map((line) => `  ${line}`)].join('\n'))
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

/** Adds to `AGENTS.md` what is there. */
async function describe(folder: string): Promise<void> {
  const file = join(folder, 'AGENTS.md')
  const { domainsDir, toolsDir } = loadSettings({ DOMAINS_DIR: join(folder, 'domains') }).settings
  const source = { folder, domainsDirs: domainsDir, toolsDir, tools: undefined }
  writeFileSync(file, await withAgentsPart(readFileSync(file, 'utf8'), source))
}

void main()
