// `heddle new domain` and `heddle new hooks`.
import { join } from 'node:path'
import { contractPlace } from '../lint/event-contract.ts'
import { pascal } from '../words.ts'
import { checkKebab, singular, snake, tableName, withArticle, words } from './names.ts'
import { filled, type Scaffold } from './templates.ts'
import {
  domainChoice,
  domainFolder,
  importPath,
  newDomainFolder,
  rootOf,
  testFile,
  type Workplace,
} from './workplace.ts'

/** `npm run new -- domain orders`: a table, an event with its contract, a plugin that uses both, and the plugin's test. */
export function scaffoldDomain(workplace: Workplace, domain: string, within: string | undefined): Scaffold {
  checkKebab('A domain', domain, 'orders')
  const folder = newDomainFolder(workplace, domain, within)
  const one = singular(domain)
  const names = {
    domain,
    path: `/${domain}`,
    one,
    a: withArticle(words(one)),
    table: freeTable(workplace, tableName(domain)),
    event: freeEvent(workplace, `${snake(one)}.added`, domain),
    Added: `${pascal(one)}Added`,
    imported: `add${pascal(one)}`,
  }
  const plugin = join(folder, 'plugins', `add-${one}.ts`)
  const test = testFile(workplace, domain, `add-${one}`)
  const inTest = {
    ...names,
    pluginPath: importPath(test, plugin),
    domainChoice: domainChoice(workplace, test, folder),
  }
  return {
    files: [
      { path: join(folder, 'events.ts'), text: filled('domain/events.ts', names) },
      {
        path: join(folder, 'migrations', `001_${snake(domain)}.sql`),
        text: filled('domain/migration.sql', names),
      },
      { path: plugin, text: filled('domain/plugin.ts', names) },
      { path: test, text: filled('domain/test.ts', inTest) },
    ],
    next: [
      `npm test ${domain}    # its test`,
      'npm start             # applies the migration, as npm run dev does when its line `-- heddle: draft` is removed. In another terminal:',
      `curl -X POST localhost:8000${names.path} -H 'content-type: application/json' -d '{"name":"first"}'`,
      `npm run new -- plugin ${domain}/show-${one}`,
      `npm run new -- hooks ${domain}    # domain.ts: guards of all its routes`,
    ],
  }
}

/** A table belongs to the domain that creates it. */
function freeTable({ project }: Workplace, table: string): string {
  const taken = project.migrations.some(({ tables }) =>
    tables.some((known) => known.role === 'create' && known.table === table),
  )
  return taken ? `${table}_entries` : table
}

/** Only one domain may declare the contract of an event. */
function freeEvent({ project }: Workplace, event: string, domain: string): string {
  const taken = contractPlace(project, event) !== undefined
  return taken ? `${snake(domain)}.new_${event.replace('.', '_')}` : event
}

/** The name under which the hooks of all domains are made. */
const APPLICATION = 'app'

/** `npm run new -- hooks orders`: the `domain.ts` of that domain; `npm run new -- hooks app`: the `app.ts` of all domains. */
export function scaffoldHooks(workplace: Workplace, name: string, within: string | undefined): Scaffold {
  checkKebab('A domain', name, 'orders')
  const isOfAll = name === APPLICATION
  const path = isOfAll
    ? join(rootOf(workplace, within), 'app.ts')
    : join(domainFolder(workplace, name, within), 'domain.ts')
  const module = isOfAll ? '../../app.ts' : '../domain.ts'
  return {
    files: [{ path, text: filled('hooks.ts', { routes: isOfAll ? 'all domains but system' : `the domain ${name}` }) }],
    next: [
      "to refuse strangers, after identify: .before((_data, { user }) => { if (user === null) throw new HttpError(401, 'Log in first') })",
      `in a plugin, for the type of context.user: import type hooks from '${module}', and ToolsIn<typeof hooks> instead of Tools`,
    ],
  }
}
