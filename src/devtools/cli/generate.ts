// The commands that write files made of what is there: `new`, `client`, `agents`, `db types`.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageFault, unknownName } from '../../core/config/command-line.ts'
import { loadSettings } from '../../core/config/load.ts'
import { shown } from '../../core/errors/places.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'
import { readText } from '../../preload/text-file.cjs'
import { bootedClient, clientFrom, runningClient } from '../client/sources.ts'
import { withAgentsPart } from '../scaffolding/agents.ts'
import { scaffoldDomain, scaffoldHooks } from '../scaffolding/domain.ts'
import { scaffoldMigration } from '../scaffolding/migration.ts'
import { scaffoldPlugin } from '../scaffolding/plugin.ts'
import { type NewFile, report, type Scaffold, write } from '../scaffolding/templates.ts'
import { scaffoldTool } from '../scaffolding/tool.ts'
import { openWorkplace, type Workplace } from '../scaffolding/workplace.ts'
import { command, keep } from './command.ts'
import { onScratchDatabase, readTables, typesText } from './database.ts'

const NEW_USAGE = `Usage: npm run new -- <what> <name> [options]

  npm run new -- domain orders                  a table, an event, a plugin, and its test
  npm run new -- plugin orders/create-order     a plugin in that domain, and its test; the verb chooses method and path
  npm run new -- migration orders/add_total     the domain's next migration
  npm run new -- hooks orders                   domain.ts: hooks of all routes of that domain; hooks app: app.ts, of all domains
  npm run new -- tool s3                        a tool with its contract, its page, and its test

  --class                   for a plugin: a class instead of a function
  --in <folder>             the folder of DOMAINS_DIR (default: the first for a new domain, else the one with the domain)
  --depends <migration>     for a migration: one of another domain that must run before it, like users/001_users; repeatable

Existing files are never overwritten.`

/** `heddle new`: the first files of a domain, a plugin, a migration, hooks or a tool. */
export const make = command(
  NEW_USAGE,
  {
    in: { type: 'string' },
    class: { type: 'boolean', default: false },
    depends: { type: 'string', multiple: true, default: [] },
  },
  async (values, [what, name, ...more]) => {
    if (what === undefined) return console.log(NEW_USAGE)
    if (name === undefined) throw new UsageFault(`${what}: a name is missing\n\n${NEW_USAGE}`)
    if (more.length > 0) throw new UsageFault(`Only one name at a time; remove ${more.join(' ')}\n\n${NEW_USAGE}`)
    const { files, next } = await scaffoldFor(what, name, values)
    write(isApplication() ? files : files.map(inRepository))
    report(
      files.map(({ path }) => shown(path)),
      next,
    )
  },
)

interface Wanted {
  in?: string
  class: boolean
  depends: string[]
}

/** What `heddle new` makes. */
const MAKERS: Readonly<Record<string, (place: Workplace, name: string, wanted: Wanted) => Scaffold>> = {
  domain: (place, name, wanted) => scaffoldDomain(place, name, wanted.in),
  plugin: (place, name, wanted) => scaffoldPlugin(place, name, wanted.in, wanted.class),
  migration: (place, name, wanted) => scaffoldMigration(place, name, wanted.in, wanted.depends),
  hooks: (place, name, wanted) => scaffoldHooks(place, name, wanted.in),
  tool: (place, name) => scaffoldTool(place, name),
}

async function scaffoldFor(what: string, name: string, wanted: Wanted): Promise<Scaffold> {
  if (wanted.depends.length > 0 && what !== 'migration') throw new UsageFault('--depends applies to a migration alone')
  if (wanted.class && what !== 'plugin') throw new UsageFault('--class applies to a plugin alone')
  if (wanted.in !== undefined && what === 'tool')
    throw new UsageFault('--in does not apply to a tool, which is made in TOOLS_DIR')
  if (!Object.hasOwn(MAKERS, what))
    throw unknownName(`There is no "${what}" to make`, what, Object.keys(MAKERS), NEW_USAGE)
  return MAKERS[what]!(await openWorkplace(), name, wanted)
}

/** The repository of the runtime has no package `heddle`: there its name is `#heddle`, which the `imports` of its package.json lead to the sources. */
function isApplication(): boolean {
  try {
    return !String(JSON.parse(readText('package.json')).imports?.['#heddle']).startsWith('./')
  } catch {
    return true
  }
}

const inRepository = ({ path, text }: NewFile): NewFile => ({ path, text: text.replaceAll("'heddle", "'#heddle") })

const CLIENT_USAGE = `Usage: npm run client -- [--out <file>] [--check] [--url <url>] [--boot] [--system]
  writes the typed client of the service: to the terminal, or to a file
  --out <file>  the file
  --check       writes nothing; exit code 1 when the file is not up to date
  --url <url>   of the process that serves at this address; SYSTEM_TOKEN or SYSTEM_READ_TOKEN is the token
  --boot        of the sources, which are booted for it: also while a process is running
  --system      with the routes under /system

Without --url it is the client of the process at HTTP_HOST and HTTP_PORT, and without one of the sources.`

export const client = command(
  CLIENT_USAGE,
  {
    out: { type: 'string' },
    check: { type: 'boolean', default: false },
    url: { type: 'string' },
    boot: { type: 'boolean', default: false },
    system: { type: 'boolean', default: false },
  },
  async ({ out, check, url, boot, system }) => {
    if (check && out === undefined) throw new UsageFault(`--check needs --out: the file to compare\n\n${CLIENT_USAGE}`)
    if (boot && url !== undefined) throw new UsageFault(`Either --boot or --url\n\n${CLIENT_USAGE}`)
    if (url !== undefined && !URL.canParse(url))
      throw new UsageFault(`--url takes an address, not ${url}\n\n${CLIENT_USAGE}`)
    const { settings } = loadSettings()
    const { systemToken, systemReadToken } = settings
    const { text, source } =
      url !== undefined
        ? await clientFrom(url, systemReadToken ?? systemToken, system)
        : ((boot ? null : await runningClient(settings, system)) ?? (await bootedClient(settings, system)))
    if (out === undefined) process.stdout.write(text)
    else keep(resolve(out), text, check, `npm run client -- --out ${shown(resolve(out))}`, source)
  },
  false,
)

const AGENTS_USAGE = `Usage: npm run agents -- [--check]
  writes into AGENTS.md which domains, plugins, routes, events, tools and commands there are; the rest of the file stays
  --check  writes nothing; exit code 1 when it is not up to date`

export const agents = command(
  AGENTS_USAGE,
  { check: { type: 'boolean', default: false } },
  async ({ check }) => {
    needPackages('heddle agents', OPTIONAL_PACKAGES.lint)
    const file = resolve('AGENTS.md')
    const before = existsSync(file) ? readText(file) : ''
    const { domainsDir, toolsDir, tools } = loadSettings().settings
    const text = await withAgentsPart(before, { folder: process.cwd(), domainsDirs: domainsDir, toolsDir, tools })
    keep(file, text, check, 'npm run agents')
  },
  false,
)

const DB_USAGE = `Usage: npm run db -- types [--check] [--out <file>]
  types         writes the types of all tables, from a scratch database to which the migrations are applied
  --check       writes nothing; exit code 1 when the file is not up to date
  --out <file>  db-types.ts in the first folder of DOMAINS_DIR when left out`

export const db = command(
  DB_USAGE,
  { check: { type: 'boolean', default: false }, out: { type: 'string' } },
  async ({ check, out }, words) => {
    if (words.length !== 1 || words[0] !== 'types') throw new UsageFault(DB_USAGE)
    const { settings } = loadSettings()
    const file = resolve(out ?? join(settings.domainsDir[0]!, 'db-types.ts'))
    const text = typesText(await onScratchDatabase(settings, readTables))
    keep(file, text, check, 'npm run db -- types, or heddle db types')
  },
)
