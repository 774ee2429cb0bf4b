import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { onScratchDatabase, readTables, typesText } from '../../../src/devtools/cli/database.ts'
import { folderOf } from '../../support/folder.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'

const MIGRATION = `CREATE TABLE "order items" (
  id TEXT PRIMARY KEY,
  quantity INTEGER NOT NULL DEFAULT 1,
  price NUMERIC(10, 2),
  is_paid BOOLEAN NOT NULL,
  bytes BYTEA,
  note VARCHAR(20),
  placed_at TIMESTAMP NOT NULL,
  body JSON
);`

const TYPES = `// Written by \`heddle db types\` from the migrations: write it again instead of changing it.

/** What a SELECT gives, an INSERT takes and an UPDATE takes, where they differ; the same as ColumnType of Kysely. */
type Column<Select, Insert, Update = Insert> = {
  readonly __select__: Select
  readonly __insert__: Insert
  readonly __update__: Update
}

/** A row of \`order items\`. */
export interface OrderItems {
  id: string
  quantity: number
  price: number | null
  is_paid: boolean
  bytes: Uint8Array | null
  note: string | null
  placed_at: string
  body: string | null
}

export interface OrderItemsTable {
  id: string
  quantity: Column<number, number | undefined, number>
  price: number | null
  is_paid: boolean
  bytes: Uint8Array | null
  note: string | null
  placed_at: string
  body: string | null
}

export interface Tables {
  'order items': OrderItemsTable
}
`

async function typesOn(t: TestContext, env: Record<string, string>): Promise<string> {
  const domains = await folderOf(t, { 'shop/migrations/001_items.sql': MIGRATION })
  const { settings } = loadSettings({ DOMAINS_DIR: domains, ...env })
  return typesText(await onScratchDatabase(settings, readTables))
}

test('the types of all tables come from the migrations, on SQLite', async (t) => {
  assert.equal(await typesOn(t, { TOOLS: 'sqlite' }), TYPES)
})

describeOnPostgres('types of tables', (server) => {
  test('are the same on PostgreSQL, whose scratch database is gone afterwards', async (t) => {
    const env = { ...server.env, TOOLS: 'postgres' }
    assert.equal(await typesOn(t, env), TYPES)
    const { settings } = loadSettings(env)
    const left = await onScratchDatabase(settings, (database) =>
      database.query("SELECT datname FROM pg_database WHERE datname LIKE 'heddle_scratch_%'"),
    )
    assert.ok(left.length <= 1, 'the one that asks')
  })
})
