import { join } from 'node:path'
import { checkKebab, pascal, singular, snake, tableName, withArticle, words } from './names.ts'
import { domainChoice, importPath, newDomainFolder, testFile, type Workplace } from './workplace.ts'
import type { Scaffold } from './writing.ts'

/** `npm run new -- domain orders`: a table, an event with its contract, a plugin that uses both, and the plugin's test. */
export function scaffoldDomain(workplace: Workplace, domain: string, within: string | undefined): Scaffold {
  checkKebab('A domain', domain, 'orders')
  const folder = newDomainFolder(workplace, domain, within)
  const one = singular(domain)
  const names: Names = {
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
  return {
    files: [
      { path: join(folder, 'events.ts'), text: events(names) },
      { path: join(folder, 'migrations', `001_${snake(domain)}.sql`), text: migration(names) },
      { path: plugin, text: pluginText(names) },
      { path: test, text: testText(names, importPath(test, plugin), domainChoice(workplace, test, folder)) },
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
  const taken = project.modules.some(({ contracts }) => contracts?.events.some((contract) => contract.event === event))
  return taken ? `${snake(domain)}.new_${event.replace('.', '_')}` : event
}

interface Names {
  domain: string
  path: string
  /** `order` */
  one: string
  /** `an order` */
  a: string
  table: string
  event: string
  Added: string
  /** The plugin, as its test names it. */
  imported: string
}

const events = ({ event, Added }: Names): string => `import { z } from 'zod'
import type { EventContracts, PayloadsOf } from 'heddle'

const contracts = {
  '${event}': z.object({ id: z.string(), name: z.string() }),
} satisfies EventContracts

export default contracts

export type ${Added} = z.infer<(typeof contracts)['${event}']>

declare module 'heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
`

const migration = ({ table }: Names): string => `\
-- heddle: draft
-- npm run dev leaves it alone until the line above is removed; a start applies it as it is.
-- Runs unchanged on SQLite and PostgreSQL: ids are made by the application, times are ISO 8601 UTC, which sorts as text.
CREATE TABLE ${table} (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL
);
`

const pluginText = ({ domain, path, a, table, event }: Names): string => `\
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DbError, plugin } from 'heddle'

const options = {
  body: z.object({ name: z.string().trim().min(1).max(100) }),
  query: z.object({}),
  tags: ['${domain}'],
  summary: 'Add ${a}',
}

/** \`POST ${path}\`: adds ${a} and publishes the event \`${event}\`, in one transaction. */
export default plugin(({ db, http }) => {
  http.post('${path}', options, async ({ name }, context) => {
    const id = randomUUID()
    try {
      await db.transaction(async (tx) => {
        await tx.execute('INSERT INTO ${table} (id, name, created_at) VALUES ($1, $2, $3)', [id, name, new Date()])
        await tx.publish('${event}', { id, name })
      })
    } catch (error) {
      // The database decides whether a name is taken: a lookup before the insert could be overtaken by another request.
      if (!(error instanceof DbError) || error.kind !== 'unique_violation') throw error
      context.setStatus(409)
      return { success: false, error: 'There is ${a} of this name already' }
    }
    context.setStatus(201)
    return { success: true, data: { id, name } }
  })
})
`

const testText = ({ path, a, event, imported, table }: Names, plugin: string, domain: string): string => `\
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from 'heddle/testing'
import ${imported} from '${plugin}'

test('${a} is stored and announced, once per name', async (t) => {
  const app = await plugin(t, ${imported}, { domain: ${domain} })
  const added = await app.post('${path}', { name: ' first ' })
  assert.equal(added.status, 201)
  assert.equal(added.body.data.name, 'first')

  const { data } = await app.event('${event}')
  assert.deepEqual(data, added.body.data)
  const row = await app.tools.db.queryOne('SELECT id, name FROM ${table}')
  assert.deepEqual(row, added.body.data)

  const again = await app.post('${path}', { name: 'first' })
  assert.equal(again.status, 409)
  assert.equal(app.events('${event}').length, 1)
})

test('a request without a name is refused with the place of the fault', async (t) => {
  const app = await plugin(t, ${imported}, { domain: ${domain} })
  const { status, body } = await app.post('${path}', {})
  assert.equal(status, 422)
  assert.equal(body.details[0].path, 'name')
})
`
