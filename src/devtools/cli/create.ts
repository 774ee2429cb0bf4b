import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { EXIT_USAGE, parseFlags, UsageFault } from '../../core/config/arguments.ts'
import { loadSettings } from '../../core/config/load.ts'
import { CommandError } from '../command-error.ts'
import { withAgentsPart } from '../scaffolding/agents.ts'
import { scaffoldApplication } from '../scaffolding/application.ts'
import { DEPLOYMENTS, scaffoldDeployment } from '../scaffolding/deployment.ts'
import { type Scaffold, write } from '../scaffolding/writing.ts'

const USAGE = `Usage: heddle create <folder> [--deploy <kind>]    writes a new application into a folder that is empty or not there
       heddle create --deploy <kind>               writes the files that deploy the application in this folder
  kinds: ${DEPLOYMENTS.join(', ')}, in deploy/; --deploy may come several times`

/** Writes an application. Exits with 1 when it cannot, with 2 when the arguments are wrong. */
async function main(): Promise<void> {
  let folder: string | null
  let kinds: string[]
  try {
    const { positionals, values } = parseFlags(USAGE, {
      allowPositionals: true,
      options: { deploy: { type: 'string', multiple: true } },
    })
    kinds = [...new Set(values.deploy ?? [])]
    const unknown = kinds.find((kind) => !DEPLOYMENTS.includes(kind))
    if (unknown !== undefined) throw new UsageFault(`There is no deployment '${unknown}'\n\n${USAGE}`)
    if (positionals.length > 1 || (positionals.length === 0 && kinds.length === 0))
      throw new UsageFault(`One folder is wanted\n\n${USAGE}`)
    folder = positionals.length === 0 ? null : resolve(positionals[0]!)
  } catch (error) {
    if (!(error instanceof UsageFault)) throw error
    console.error(error.message)
    process.exitCode = EXIT_USAGE
    return
  }
  try {
    const { files, next } = folder === null ? ofThisFolder(kinds) : ofNewFolder(folder, kinds)
    write(files)
    if (folder !== null) await describe(folder)
    const written = files.map(({ path }) => `  ${relative('.', path)}`)
    console.log(['Wrote', ...written, 'Next', ...next.map((line) => `  ${line}`)].join('\n'))
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

function ofNewFolder(folder: string, kinds: readonly string[]): Scaffold {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new CommandError(`${folder} is not empty`)
  const application = scaffoldApplication(folder, basename(folder), relative('.', folder) || '.')
  const deployment = scaffoldDeployment(folder, basename(folder), kinds)
  return {
    files: [...application.files, ...deployment.files],
    next: [...application.next, ...deployment.next],
  }
}

/** @throws CommandError where no application is */
function ofThisFolder(kinds: readonly string[]): Scaffold {
  let manifest: { name?: string; dependencies?: Record<string, string> } = {}
  try {
    manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  } catch {
    // There is none, or it is none.
  }
  if (manifest.dependencies?.heddle === undefined)
    throw new CommandError('There is no application here: no package.json has heddle among its dependencies')
  const folder = resolve('.')
  return scaffoldDeployment(folder, manifest.name?.split('/').at(-1) ?? basename(folder), kinds)
}

/** Adds to `AGENTS.md` what is there. */
async function describe(folder: string): Promise<void> {
  const file = join(folder, 'AGENTS.md')
  const { domainsDir, toolsDir } = loadSettings({ DOMAINS_DIR: join(folder, 'domains') }).settings
  const source = { folder, domainsDirs: domainsDir, toolsDir, tools: undefined }
  writeFileSync(file, await withAgentsPart(readFileSync(file, 'utf8'), source))
}

void main()
