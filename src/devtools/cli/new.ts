import { readFileSync } from 'node:fs'
import { EXIT_USAGE, parseFlags, UsageFault, unknownName } from '../../core/config/arguments.ts'
import { ConfigFaults, EXIT_CONFIG } from '../../core/config/load.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { CommandError } from '../command-error.ts'
import { scaffoldDomain, scaffoldHooks } from '../scaffolding/domain.ts'
import { scaffoldMigration } from '../scaffolding/migration.ts'
import { scaffoldPlugin } from '../scaffolding/plugin.ts'
import { scaffoldTool } from '../scaffolding/tool.ts'
import { openWorkplace } from '../scaffolding/workplace.ts'
import { type NewFile, type Scaffold, write } from '../scaffolding/templates.ts'

const USAGE = `Usage: npm run new -- <what> <name> [options]

  npm run new -- domain orders                  a table, an event, a plugin, and its test
  npm run new -- plugin orders/create-order     a plugin in that domain, and its test; the verb chooses method and path
  npm run new -- migration orders/add_total     the domain's next migration
  npm run new -- hooks orders                   domain.ts: hooks of all routes of that domain; hooks app: app.ts, of all domains
  npm run new -- tool s3                        a tool with its contract, its page, and its test

  --class                   for a plugin: a class instead of a function
  --in <folder>             the folder of DOMAINS_DIR (default: the first for a new domain, else the one with the domain)
  --depends <migration>     for a migration: one of another domain that must run before it, like users/001_users; repeatable

Existing files are never overwritten.`

/** Writes the first files of a domain, a plugin, a migration, hooks or a tool. Exits with 1 when it cannot, with 2 when the arguments are wrong. */
async function main(): Promise<void> {
  try {
    const { values, positionals } = parseFlags(USAGE, {
      allowPositionals: true,
      options: {
        in: { type: 'string' },
        class: { type: 'boolean', default: false },
        depends: { type: 'string', multiple: true, default: [] },
      },
    })
    const [what, name, ...more] = positionals
    if (what === undefined) console.log(USAGE)
    else if (name === undefined) throw new UsageFault(`${what}: a name is missing\n\n${USAGE}`)
    else if (more.length > 0) throw new UsageFault(`Only one name at a time; remove ${more.join(' ')}\n\n${USAGE}`)
    else {
      const scaffold = await scaffoldFor(what, name, values)
      write(isApplication() ? scaffold.files : scaffold.files.map(inRepository))
      console.log(
        ['Wrote', ...scaffold.files.map(({ path }) => `  ${shown(path)}`), 'Next', ...scaffold.next.map(indent)].join(
          '\n',
        ),
      )
    }
  } catch (error) {
    const isConfig = error instanceof ConfigFaults || (error instanceof HeddleError && error.code === 'CONFIG_INVALID')
    const isUsage = error instanceof UsageFault
    if (!isConfig && !isUsage && !(error instanceof CommandError)) throw error
    console.error((error as Error).message)
    process.exitCode = isConfig ? EXIT_CONFIG : isUsage ? EXIT_USAGE : 1
  }
}

async function scaffoldFor(
  what: string,
  name: string,
  values: { in?: string; class: boolean; depends: string[] },
): Promise<Scaffold> {
  if (values.depends.length > 0 && what !== 'migration') throw new UsageFault('--depends applies to a migration alone')
  if (values.class && what !== 'plugin') throw new UsageFault('--class applies to a plugin alone')
  if (values.in !== undefined && what === 'tool')
    throw new UsageFault('--in does not apply to a tool, which is made in TOOLS_DIR')
  switch (what) {
    case 'domain':
      return scaffoldDomain(await openWorkplace(), name, values.in)
    case 'plugin':
      return scaffoldPlugin(await openWorkplace(), name, values.in, values.class)
    case 'migration':
      return scaffoldMigration(await openWorkplace(), name, values.in, values.depends)
    case 'hooks':
      return scaffoldHooks(await openWorkplace(), name, values.in)
    case 'tool':
      return scaffoldTool(await openWorkplace(), name)
  }
  throw unknownName(`There is no "${what}" to make`, what, ['domain', 'plugin', 'migration', 'hooks', 'tool'], USAGE)
}

/** The repository of the runtime has no package `heddle`: there its name is `#heddle`, which the `imports` of its package.json lead to the sources. */
function isApplication(): boolean {
  try {
    return !String(JSON.parse(readFileSync('package.json', 'utf8')).imports?.['#heddle']).startsWith('./')
  } catch {
    return true
  }
}

const inRepository = ({ path, text }: NewFile): NewFile => ({ path, text: text.replaceAll("'heddle", "'#heddle") })

function indent(line: string): string {
  return `  ${line}`
}

void main()
