// `heddle new migration`.
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CommandError } from '../../core/config/command-line.ts'
import { checkSnake, inDomain } from './names.ts'
import type { Scaffold } from './templates.ts'
import { domainFolder, type Workplace } from './workplace.ts'

const NUMBER_CHARS = 3
const NUMERIC = /(?:^|_)(?:total|count|number|amount|quantity|price|cents|size|length|position|version)$/

/**
 * `npm run new -- migration orders/add_total`: a migration with the domain's next number.
 * @param depends migrations of other domains that it depends on
 */
export function scaffoldMigration(
  workplace: Workplace,
  target: string,
  within: string | undefined,
  depends: readonly string[],
): Scaffold {
  const [domain, name] = inDomain(target, 'A migration', '<domain>/<what_it_does>, like orders/add_total')
  checkSnake('A migration', name, 'add_total')
  const folder = join(domainFolder(workplace, domain, within), 'migrations')
  const earlier = (existsSync(folder) ? readdirSync(folder) : [])
    .filter((file) => /^\d{3,}_.*\.sql$/.test(file))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
  const twin = earlier.find((file) => file.replace(/^\d+_/, '') === `${name}.sql`)
  if (twin !== undefined) throw new CommandError(`The domain ${domain} has a migration of this name already: ${twin}`)
  const last = earlier.at(-1)
  const number = String(last === undefined ? 1 : Number.parseInt(last, 10) + 1).padStart(NUMBER_CHARS, '0')
  checkDepends(workplace, depends)
  const behind = [...(last === undefined ? [] : [`${domain}/${basename(last, '.sql')}`]), ...depends]
  const text = [
    ...behind.map((id) => `-- depends: ${id}`),
    '-- heddle: draft',
    '-- npm run dev leaves it alone until the line above is removed; a start applies it as it is.',
    '-- Runs once, in one transaction, on SQLite and PostgreSQL alike. Once it has been applied anywhere, do not change it: write a new migration.',
    statement(name, tablesOf(workplace, domain, folder)),
    '',
  ].join('\n')
  return {
    files: [{ path: join(folder, `${number}_${name}.sql`), text }],
    next: [
      'Write its SQL, then remove its line `-- heddle: draft`: npm run dev applies it as soon as that is saved.',
      'npm run migrate    # applies it now, as it is; so does every start. It must not change afterwards.',
    ],
  }
}

function checkDepends({ project }: Workplace, depends: readonly string[]): void {
  const known = project.migrations.map(({ id }) => id)
  const missing = depends.find((id) => !known.includes(id))
  if (missing === undefined) return
  throw new CommandError(`--depends ${missing}: there is no such migration; there are ${known.join(', ') || 'none'}`)
}

/** Tables that the domain's migrations create. */
function tablesOf({ project }: Workplace, domain: string, folder: string): string[] {
  const own = project.migrations.filter(
    (migration) => migration.domain === domain && dirname(migration.file) === folder,
  )
  return own.flatMap(({ tables }) => tables.filter(({ role }) => role === 'create').map(({ table }) => table))
}

/** The statement that the name suggests, or an example to replace. */
function statement(name: string, tables: readonly string[]): string {
  const table = tables.length === 1 ? tables[0]! : undefined
  const column = /^add_([a-z0-9_]+)$/.exec(name)?.[1]
  if (column !== undefined && table !== undefined) {
    return `ALTER TABLE ${table} ADD COLUMN ${column} ${NUMERIC.test(column) ? 'INTEGER' : 'TEXT'};`
  }
  const created = /^create_([a-z0-9_]+)$/.exec(name)?.[1]
  if (created !== undefined) return `CREATE TABLE ${created} (\n  id TEXT PRIMARY KEY\n);`
  return `-- For example: ALTER TABLE ${table ?? 'things'} ADD COLUMN note TEXT;\nSELECT 1;`
}
