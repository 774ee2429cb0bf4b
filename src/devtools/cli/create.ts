// The command `create`.
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { createInterface, type Interface } from 'node:readline/promises'
import { CommandError, UsageFault, unknownName } from '../../core/config/command-line.ts'
import { NAME } from '../../core/config/kinds.ts'
import { loadSettings } from '../../core/config/load.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'
import { readText } from '../../preload/text-file.cjs'
import { withAgentsPart } from '../scaffolding/agents.ts'
import { heddleSource, packagesOf, scaffoldApplication, USE_NAMES } from '../scaffolding/application.ts'
import { DEPLOYMENTS, scaffoldDeployment, stageHere, stageOf, usesOf } from '../scaffolding/deployment.ts'
import { report, type Scaffold, write } from '../scaffolding/templates.ts'
import { command } from './command.ts'

const USAGE = `Usage: heddle create <folder> [--with <uses>] [--lane-env <names>] [--deploy <kind>]    writes a new application into a folder that is empty or not there
       heddle create --deploy <kind>    writes the files that deploy the application in this folder
  uses:  ${USE_NAMES.join(', ')}: what package.json asks for beside heddle; separated by commas, or none
  names: ${NAME.wanted} that libraries read by themselves: LANE_ENV in .env.example; separated by commas, or none
  kinds: ${DEPLOYMENTS.join(', ')}, in deploy/; --deploy may come several times`
const USES_QUESTION = `What will it use? ${USE_NAMES.join(', ')}
Names, separated by commas; Enter for none, npm install adds them later: `
const LANE_ENV_QUESTION = `Which variables do libraries read by themselves, such as OPENAI_API_KEY or AWS_*?
Names, separated by commas; Enter for none, LANE_ENV adds them later: `
const NONE = 'none'

export const create = command(
  USAGE,
  {
    deploy: { type: 'string', multiple: true },
    with: { type: 'string', multiple: true },
    'lane-env': { type: 'string', multiple: true },
  },
  async ({ deploy = [], with: use, 'lane-env': laneEnv }, words) => {
    const kinds = [...new Set(deploy)]
    const unknown = kinds.find((kind) => !DEPLOYMENTS.includes(kind))
    if (unknown !== undefined) throw new UsageFault(`There is no deployment '${unknown}'\n\n${USAGE}`)
    const [word, ...more] = words
    if (more.length > 0 || (word === undefined && (kinds.length === 0 || use !== undefined || laneEnv !== undefined)))
      throw new UsageFault(`One folder is wanted\n\n${USAGE}`)
    if (word !== undefined) {
      const chosen = { uses: use && usesIn(use.join()), laneEnv: laneEnv && variablesIn(laneEnv.join()) }
      return createApplication(resolve(word), chosen, kinds)
    }
    const { files, next } = ofThisFolder(kinds)
    write(files)
    report(files.map(fromHere), next)
  },
)

interface Chosen {
  uses: string[]
  laneEnv: string[]
}

/** @param chosen as far as somebody has said it */
async function createApplication(folder: string, chosen: Partial<Chosen>, kinds: readonly string[]): Promise<void> {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new CommandError(`${folder} is not empty`)
  const source = heddleSource()
  const { uses: wanted, laneEnv } = await completed(chosen)
  const uses = [...new Set([...wanted, ...usesOf(kinds)])]
  const name = basename(folder)
  const parts = [
    scaffoldApplication(folder, name, relative('.', folder) || '.', { uses, laneEnv, source }),
    scaffoldDeployment(folder, name, kinds, stageOf(wanted)),
  ]
  const files = parts.flatMap((part) => part.files)
  write(files)
  const packed = source.file === null ? [] : [{ path: join(folder, basename(source.file)) }]
  for (const { path } of packed) copyFileSync(source.file!, path)
  await describe(folder)
  report(
    [...files, ...packed].map(fromHere),
    parts.flatMap(({ next }) => next),
  )
}

const fromHere = ({ path }: { path: string }): string => relative('.', path)

const namesIn = (text: string): string[] => [
  ...new Set(text.split(',').flatMap((name) => (['', NONE].includes(name.trim()) ? [] : [name.trim()]))),
]

/** @throws UsageFault */
function usesIn(text: string): string[] {
  const names = namesIn(text)
  const unknown = names.find((name) => !USE_NAMES.includes(name))
  if (unknown !== undefined) throw unknownName(`There is no use '${unknown}'`, unknown, [...USE_NAMES, NONE], USAGE)
  return names
}

/** @throws UsageFault */
function variablesIn(text: string): string[] {
  const names = namesIn(text)
  const wrong = names.find((name) => NAME.read(name) === undefined)
  if (wrong !== undefined) throw new UsageFault(`'${wrong}': expected ${NAME.wanted}\n\n${USAGE}`)
  return names
}

/** Asks for what nobody has said; nothing where nobody can answer. */
async function completed({ uses, laneEnv }: Partial<Chosen>): Promise<Chosen> {
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
  if (!isTerminal || (uses !== undefined && laneEnv !== undefined)) return { uses: uses ?? [], laneEnv: laneEnv ?? [] }
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return {
      uses: uses ?? (await answerTo(USES_QUESTION, terminal, usesIn)),
      laneEnv: laneEnv ?? (await answerTo(LANE_ENV_QUESTION, terminal, variablesIn)),
    }
  } finally {
    terminal.close()
  }
}

async function answerTo(question: string, terminal: Interface, read: (text: string) => string[]): Promise<string[]> {
  for (;;) {
    try {
      return read(await terminal.question(question))
    } catch (error) {
      if (!(error instanceof UsageFault)) throw error
      console.log(error.message.split('\n')[0])
    }
  }
}

/** @throws CommandError where no application is */
function ofThisFolder(kinds: readonly string[]): Scaffold {
  let manifest: { name?: string; dependencies?: Record<string, string> } = {}
  try {
    manifest = JSON.parse(readText('package.json'))
  } catch {
    // There is none, or it is none.
  }
  if (manifest.dependencies?.heddle === undefined)
    throw new CommandError('There is no application here: no package.json has heddle among its dependencies')
  const folder = resolve('.')
  const name = manifest.name?.split('/').at(-1) ?? basename(folder)
  const { files, next } = scaffoldDeployment(folder, name, kinds, stageHere())
  const missing = Object.entries(packagesOf(usesOf(kinds)).dependencies).filter(
    ([name]) => manifest.dependencies?.[name] === undefined,
  )
  const install = missing.map(([name, range]) => `${name}@${range}`).join(' ')
  return { files, next: missing.length === 0 ? next : [`npm install ${install}`, ...next] }
}

/** Adds to `AGENTS.md` what is there, as far as sources can be read here: else `npm run agents` does, when they can. */
async function describe(folder: string): Promise<void> {
  const file = join(folder, 'AGENTS.md')
  const { domainsDir, toolsDir } = loadSettings({ DOMAINS_DIR: join(folder, 'domains') }).settings
  const source = { folder, domainsDirs: domainsDir, toolsDir, tools: undefined }
  try {
    needPackages('AGENTS.md', OPTIONAL_PACKAGES.lint)
  } catch {
    return
  }
  writeFileSync(file, await withAgentsPart(readText(file), source))
}
