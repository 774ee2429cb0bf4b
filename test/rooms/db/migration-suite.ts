import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Row } from '../../../src/contracts/db.ts'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { MigrationDriver } from '../../../src/stores/migrations/driver.ts'
import { migrate, migrationStatus, pending, rollBack, runSeeds, settle } from '../../../src/stores/migrations/runner.ts'
import type { SqlDatabase } from '../../../src/stores/sql/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'
import { type LogLine, type RuntimeOptions, writeFiles } from './fixture.ts'

/** An empty database. */
export interface MigrationTarget {
  driver: MigrationDriver
  /** Over a connection of its own. */
  query(sql: string): Promise<Row[]>
  /** All tables, by name. */
  tables(): Promise<string[]>
  /** The tool on this database, after its boot; stopped after the test. */
  boot(options: Partial<RuntimeOptions>): Promise<SqlDatabase>
  /** What `migrate-process.ts` needs to find it. */
  address: unknown
}

/** What a migration may do on every database, and what a process that migrates does about it. */
export function runMigrationSuite(
  name: string,
  create: (t: TestContext) => Promise<MigrationTarget>,
  words: { missingTable: RegExp; alone: (n: number) => string },
): void {
  async function withDomains(t: TestContext, files: Record<string, string>) {
    const root = temporaryFolder(t)
    const folder = join(root, 'domains')
    const add = (more: Record<string, string>) =>
      writeFiles(
        folder,
        Object.fromEntries(Object.entries(more).map(([id, sql]) => [id.replace('/', '/migrations/'), sql])),
      )
    await add(files)
    const target = await create(t)
    const run = () => migrate(target.driver, [folder], () => {})
    return { ...target, target, root, folder, add, run }
  }

  describe(`migrations on ${name}`, () => {
    test('a draft, and what comes after it, waits while somebody may write it; without the line it is the same text', async (t) => {
      const draft = '-- depends: beta/001_b\n-- heddle: draft\nCREATE TABLE a1 (id TEXT);'
      const { add, folder, run, target } = await withDomains(t, {
        'alpha/001_a.sql': draft,
        'alpha/002_after.sql': 'ALTER TABLE a1 ADD COLUMN x TEXT;',
        'beta/001_b.sql': 'CREATE TABLE b1 (id TEXT);',
        'gamma/001_c.sql': '-- depends: alpha/001_a\nCREATE TABLE c1 (id TEXT);',
      })
      const told: string[] = []
      const save = () => migrate(target.driver, [folder], (_, message) => void told.push(message), true)
      assert.deepEqual(await save(), ['beta/001_b'])
      assert.equal(told.filter((message) => /alpha\/001_a is a draft and is not applied/.test(message)).length, 1)
      const written = draft.replace('-- heddle: draft\n', '')
      await add({ 'alpha/001_a.sql': written })
      assert.deepEqual(await save(), ['alpha/001_a', 'alpha/002_after', 'gamma/001_c'])
      await add({ 'alpha/001_a.sql': draft, 'beta/002_d.sql': '-- heddle: draft\r\nCREATE TABLE b2 (id TEXT);' })
      assert.deepEqual(await save(), [], 'the line is no change')
      assert.deepEqual(await run(), ['beta/002_d'], 'a start applies it')
      assert.deepEqual(await run(), [])
    })

    test('migrations are applied once, by file number within a domain and by dependency across', async (t) => {
      const { run, query, tables } = await withDomains(t, {
        'alpha/001_first.sql': '-- depends: beta/010_last\nCREATE TABLE a1 (id TEXT REFERENCES b10 (id));',
        'alpha/002_second.sql': 'ALTER TABLE a1 ADD COLUMN x TEXT;',
        'beta/002_two.sql': 'CREATE TABLE b2 (id TEXT PRIMARY KEY);',
        'beta/010_last.sql':
          '-- A comment\n\n-- depends: gamma/001_base\n-- depends: beta/002_two\nCREATE TABLE b10 (id TEXT PRIMARY KEY);',
        'gamma/001_base.sql': 'CREATE TABLE g1 (id TEXT PRIMARY KEY);',
        'gamma/1000_thousand.sql': 'CREATE TABLE g1000 (id TEXT);',
        'gamma/999_before.sql': 'CREATE TABLE g999 (id TEXT);',
      })
      const order = [
        'beta/002_two',
        'gamma/001_base',
        'beta/010_last',
        'alpha/001_first',
        'alpha/002_second',
        'gamma/999_before',
        'gamma/1000_thousand',
      ]
      assert.deepEqual(await run(), order)
      assert.deepEqual(await run(), [])
      assert.deepEqual(await tables(), ['_migrations', 'a1', 'b10', 'b2', 'g1', 'g1000', 'g999'])
      const rows = (await query('SELECT id, checksum, applied_at FROM _migrations')) as Record<string, string>[]
      assert.deepEqual(rows.map((row) => row.id).sort(), [...order].sort())
      for (const row of rows) {
        assert.match(row.checksum!, /^[0-9a-f]{64}$/)
        assert.match(row.applied_at!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      }
    })

    test('the last migrations are taken back by their down files, in the reverse of their order', async (t) => {
      const { run, target, folder, tables } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT PRIMARY KEY);',
        'a/002_two.sql': '-- depends: b/001_one\nCREATE TABLE a2 (id TEXT REFERENCES b1 (id));',
        'a/002_two.down.sql': 'DROP TABLE a2;',
        'b/001_one.sql': '-- depends: a/001_one\nCREATE TABLE b1 (id TEXT PRIMARY KEY);',
        'b/001_one.down.sql': 'DROP TABLE b1;',
      })
      const states = async () =>
        (await migrationStatus(target.driver, [folder])).map(({ id, state }) => `${id} ${state}`)
      await run()
      assert.deepEqual(await rollBack(target.driver, [folder], 2, () => {}), ['a/002_two', 'b/001_one'])
      assert.deepEqual(await states(), ['a/001_one applied', 'b/001_one pending', 'a/002_two pending'])
      assert.deepEqual(await tables(), ['_migrations', 'a1'])
      await refusal(
        rollBack(target.driver, [folder], 1, () => {}),
        /a\/001_one cannot be taken back: write .*001_one\.down\.sql/,
      )
      assert.deepEqual(await run(), ['b/001_one', 'a/002_two'])
    })

    test('a down file that fails changes nothing, and one without its migration is refused', async (t) => {
      const { run, add, target, folder, tables } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT PRIMARY KEY);',
        'a/001_one.down.sql': 'DROP TABLE a1; DROP TABLE no_such_table;',
      })
      await run()
      await refusal(
        rollBack(target.driver, [folder], 1, () => {}),
        /a\/001_one\.down\.sql failed and was rolled back/,
      )
      assert.deepEqual(await tables(), ['_migrations', 'a1'])
      await add({ 'a/002_two.down.sql': 'DROP TABLE a2;' })
      await refusal(run(), /there is no 002_two\.sql that it takes back/)
    })

    test('seeds run by domain, again and again, and everything can be cleared', async (t) => {
      const { run, root, target, folder, tables, query } = await withDomains(t, {
        'a/001_one.sql': '-- depends: b/001_one\nCREATE TABLE a1 (id TEXT REFERENCES b1 (id));',
        'b/001_one.sql': 'CREATE TABLE b1 (id TEXT PRIMARY KEY); CREATE VIEW ids AS SELECT id FROM b1;',
      })
      await writeFiles(root, {
        'domains/a/seeds/one.sql': "INSERT INTO a1 (id) VALUES ('x');",
        'domains/b/seeds/one.sql': "INSERT INTO b1 (id) VALUES ('x') ON CONFLICT DO NOTHING;",
      })
      await run()
      const seed = () => runSeeds(target.driver, [folder], () => {})
      assert.deepEqual(await seed(), ['b/one', 'a/one'])
      await seed()
      assert.equal((await query('SELECT id FROM a1')).length, 2)
      await target.driver.clear()
      assert.deepEqual(await tables(), [])
      assert.deepEqual(await run(), ['b/001_one', 'a/001_one'])
    })

    const NAMES =
      "CREATE TABLE names (id TEXT PRIMARY KEY, name TEXT DEFAULT 'Müller');\nINSERT INTO names (id) VALUES ('a');"
    const inLatin1 = Buffer.from(NAMES, 'latin1')
    /** As versions before this one have recorded it. */
    const digest = (text: string) => createHash('sha256').update(text).digest('hex')

    test('a migration in UTF-8 is applied alike with and without a byte order mark, and counts as unchanged', async (t) => {
      const { run, add, query, folder, target } = await withDomains(t, {
        'a/001_one.sql': `\ufeff-- depends: b/001_one\n${NAMES}`,
      })
      await add({ 'b/001_one.sql': '\ufeffCREATE TABLE b1 (id TEXT);', 'b/001_one.down.sql': '\ufeffDROP TABLE b1;' })
      assert.deepEqual(await run(), ['b/001_one', 'a/001_one'])
      assert.deepEqual(await query('SELECT name FROM names'), [{ name: 'Müller' }])
      await add({ 'a/001_one.sql': `-- depends: b/001_one\n${NAMES}` })
      assert.deepEqual(await run(), [])
      // An earlier version has counted the mark.
      await target.driver.transaction(async (session) => {
        await session.forget('b/001_one')
        await session.record(
          { id: 'b/001_one', checksum: digest('\ufeffCREATE TABLE b1 (id TEXT);') },
          '2026-01-01T00:00:00.000Z',
        )
      })
      for (const mark of ['\ufeff', '']) {
        await add({ 'b/001_one.sql': `${mark}CREATE TABLE b1 (id TEXT);` })
        assert.deepEqual(await run(), [])
      }
      assert.deepEqual(await rollBack(target.driver, [folder], 2, () => {}).catch(() => 'no down file'), 'no down file')
    })

    test('a migration, a seed or a down file that is not UTF-8 is refused with its line, before anything is applied', async (t) => {
      const { run, target, root, folder, tables } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);',
      })
      const write = (file: string, bytes: Buffer) => writeFile(join(folder, file), bytes)
      for (const [bytes, message] of [
        [inLatin1, /002_two\.sql:1: the byte 0xFC \(ü in Latin-1\) in column 62 is not UTF-8/],
        [Buffer.from(`\ufeff${NAMES}`, 'utf16le'), /002_two\.sql:1: this is UTF-16/],
        [Buffer.from(NAMES, 'utf16le'), /002_two\.sql:1: /],
        [Buffer.from('SELECT 1;\nSELECT \0 2;'), /002_two\.sql:2: a NUL/],
      ] as const) {
        await write('a/migrations/002_two.sql', bytes)
        await refusal(run(), message)
        await refusal(pending(target.driver, [folder]), message)
      }
      assert.deepEqual(await tables(), [])
      await write('a/migrations/002_two.sql', Buffer.from(NAMES))
      await write('a/migrations/002_two.down.sql', Buffer.from('-- ü\nDROP TABLE names;', 'latin1'))
      assert.deepEqual(await run(), ['a/001_one', 'a/002_two'])
      await refusal(
        rollBack(target.driver, [folder], 1, () => {}),
        /002_two\.down\.sql:1: the byte 0xFC/,
      )
      await writeFiles(root, { 'domains/a/seeds/one.sql': '' })
      await write('a/seeds/one.sql', Buffer.from("\nINSERT INTO names VALUES ('b', 'ü');", 'latin1'))
      await refusal(
        runSeeds(target.driver, [folder], () => {}),
        /seeds\/one\.sql:2: the byte 0xFC/,
      )
      await write('a/seeds/one.sql', Buffer.from("\ufeffINSERT INTO names VALUES ('b', 'ü');"))
      assert.deepEqual(await runSeeds(target.driver, [folder], () => {}), ['a/one'])
    })

    test('a file in Latin-1 that an earlier version has applied stays applied, also when it is saved as UTF-8', async (t) => {
      const { add, folder, target } = await withDomains(t, { 'a/001_one.sql': '' })
      await writeFile(join(folder, 'a/migrations/001_one.sql'), inLatin1)
      await target.driver.transaction(async (session) => {
        await session.createTable()
        await session.record({ id: 'a/001_one', checksum: digest(inLatin1.toString()) }, '2026-01-01T00:00:00.000Z')
      })
      const told: string[] = []
      const again = () => migrate(target.driver, [folder], (level, message) => void told.push(`${level} ${message}`))
      assert.deepEqual(await again(), [])
      assert.match(
        told.join(),
        /^WARNING Migration a\/001_one: .*001_one\.sql:1: the byte 0xFC .* Save it as UTF-8, which stays the same migration/,
      )
      await add({ 'a/001_one.sql': NAMES })
      assert.deepEqual(await again(), [])
      assert.equal(told.length, 1)
      await add({ 'a/001_one.sql': NAMES.replace('Müller', 'Müllerin') })
      await refusal(again(), /a\/001_one was changed after it was applied/)
    })

    test('a migration that a link leads to is one', async (t) => {
      const { run, root, folder } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);' })
      await writeFiles(root, { 'shared.sql': 'CREATE TABLE a2 (id TEXT);' })
      await symlink(join(root, 'shared.sql'), join(folder, 'a/migrations/002_two.sql'))
      assert.deepEqual(await run(), ['a/001_one', 'a/002_two'])
    })

    const refused: Record<string, [files: Record<string, string>, message: RegExp]> = {
      'a circle': [
        {
          'a/001_one.sql': '-- depends: b/002_two\nCREATE TABLE a1 (id TEXT);',
          'b/001_one.sql': '-- depends: a/001_one\nCREATE TABLE b1 (id TEXT);',
          'b/002_two.sql': 'CREATE TABLE b2 (id TEXT);',
          'c/001_free.sql': 'CREATE TABLE c1 (id TEXT);',
        },
        /circle: a\/001_one → b\/002_two → b\/001_one → a\/001_one/,
      ],
      'a dependency that does not exist': [
        { 'a/001_one.sql': '-- depends: b/007_gone\nCREATE TABLE a1 (id TEXT);' },
        /a\/001_one depends on b\/007_gone/,
      ],
      'a file with another name': [{ 'a/create.sql': 'SELECT 1;' }, /create\.sql.*NNN_name\.sql/],
      'a malformed header': [{ 'a/001_one.sql': '-- depends: b\nSELECT 1;' }, /001_one\.sql.*depends: b/],
      'a script that would end its transaction itself': [
        { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT); COMMIT; CREATE TABLE a2 (id TEXT);' },
        /a\/001_one.*COMMIT/,
      ],
    }
    for (const [what, [files, message]] of Object.entries(refused)) {
      test(`${what} is refused by name before anything is applied`, async (t) => {
        const { run, tables } = await withDomains(t, files)
        await refusal(run(), message)
        assert.deepEqual(await tables(), [])
      })
    }

    test('one id in two folders is refused; folders are all scanned, and those that do not exist hold nothing', async (t) => {
      const one = await withDomains(t, { 'a/001_one.sql': '-- depends: b/001_one\nCREATE TABLE a1 (id TEXT);' })
      const two = await withDomains(t, { 'b/001_one.sql': 'CREATE TABLE b1 (id TEXT);' })
      const twin = await withDomains(t, { 'a/001_one.sql': 'SELECT 1;' })
      const run = (...folders: string[]) => migrate(one.driver, folders, () => {})
      await refusal(run(one.folder, two.folder, twin.folder), /Two files are the migration a\/001_one/)
      assert.deepEqual(await run(one.folder, join(one.root, 'none'), two.folder), ['b/001_one', 'a/001_one'])
    })

    test('an applied file whose text has changed is refused by name; other line ends are no change', async (t) => {
      const { run, add, tables } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);\n' })
      await run()
      await add({ 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);\r\n' })
      assert.deepEqual(await run(), [])
      await add({
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT); -- changed\n',
        'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);',
      })
      await refusal(run(), /a\/001_one was changed after it was applied/)
      assert.deepEqual(await tables(), ['_migrations', 'a1'])
    })

    test('a migration that fails half-way leaves nothing of itself, and those before it stay', async (t) => {
      const { run, add, tables } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);',
        'a/002_two.sql': 'CREATE TABLE a2 (id TEXT); INSERT INTO a1 VALUES (1); INSERT INTO no_such_table VALUES (1);',
        'a/003_three.sql': 'CREATE TABLE a3 (id TEXT);',
      })
      await refusal(run(), new RegExp(`a/002_two failed and was rolled back: ${words.missingTable.source}`))
      assert.deepEqual(await tables(), ['_migrations', 'a1'])
      await add({ 'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);' })
      assert.deepEqual(await run(), ['a/002_two', 'a/003_three'])
    })

    test('a migration that fails is told with its file, line, column and statement, and with what to do', async (t) => {
      const { run, add, target, folder, root } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT PRIMARY KEY, n INTEGER NOT NULL);',
        'b/001_one.sql': 'CREATE TABLE b1 (id TEXT PRIMARY KEY);',
      })
      await run()
      const place = (id: string): string => `${join(folder, id.replace('/', '/migrations/'))}.sql`
      /** The message of a script that fails, its fixed words replaced. */
      const fault = async (id: string, sql: string, work: () => Promise<unknown> = run): Promise<string[]> => {
        await add({ [`${id}.sql`]: sql })
        const thrown = (await work().catch((error: unknown) => error)) as Error
        await rm(place(id))
        assert.ok(thrown instanceof HeddleError, String(thrown))
        return thrown.message.replaceAll(place(id), 'FILE').split('\n')
      }
      const cases: { sql: string; mistake: RegExp; place?: string[]; fix: string }[] = [
        {
          sql: "-- ä comment; with a semicolon\nINSERT INTO a1 VALUES ('x;', 1);\n\nCREATE TABEL a2 (id TEXT);\nSELECT 1;",
          mistake: /near "TABEL"/,
          place: [
            '  FILE:4:8',
            '    4 | CREATE TABEL a2 (id TEXT);',
            '               ^',
            '  statement: CREATE TABEL a2 (id TEXT)',
          ],
          fix: 'nothing of it was applied. Correct the file and start again.',
        },
        {
          sql: 'CREATE TABLE a2 (id TEXT);\n  INSERT INTO nowhere\n    VALUES (1);',
          mistake: /no such table: nowhere|"nowhere" does not exist/,
          place: [
            '  FILE:2:15',
            '    2 | INSERT INTO nowhere',
            '                    ^',
            '  statement: INSERT INTO nowhere VALUES (1)',
          ],
          fix: 'no migration makes the table nowhere: correct the name, or make it first;',
        },
        {
          sql: "INSERT INTO a1 VALUES ('x', 1);\nINSERT INTO a1 VALUES ('y', 1); INSERT INTO a1 VALUES ('x', 2);",
          mistake: /unique/i,
          place: [
            '  FILE:2:33',
            "    2 | INSERT INTO a1 VALUES ('y', 1); INSERT INTO a1 VALUES ('x', 2);",
            `${' '.repeat(40)}^`,
            "  statement: INSERT INTO a1 VALUES ('x', 2)",
          ],
          fix: 'rows that are there already break it',
        },
        {
          sql: 'CREATE TABLE b1 (id TEXT);',
          mistake: /b1"? already exists/,
          fix: 'b/001_one makes it, too: drop it, take another name, or write IF NOT EXISTS',
        },
        {
          sql: 'CREATE TABLE a2 (\n  id INTEGER PRIMARY KEY AUTO_INCREMENT\n);',
          mistake: /near "AUTO_INCREMENT"/,
          place: [
            '  FILE:2:26',
            '    2 | id INTEGER PRIMARY KEY AUTO_INCREMENT',
            `${' '.repeat(31)}^`,
            '  statement: CREATE TABLE a2 ( id INTEGER PRIMARY KEY AUTO_INCREMENT )',
          ],
          fix: 'take a key that the application makes',
        },
      ]
      for (const { sql, mistake, place: shown, fix } of cases) {
        const [first, ...rest] = await fault('a/002_two', sql)
        assert.ok(first!.startsWith('Migration a/002_two failed and was rolled back: '), first)
        assert.match(first!, mistake)
        assert.match(first!, / in line \d \(FILE\)$/)
        assert.ok(rest.at(-1)!.startsWith(`  Fix: ${fix}`), rest.at(-1))
        if (shown !== undefined) assert.deepEqual(rest.slice(0, -1), shown)
      }
      await add({ 'c/001_one.sql': 'CREATE TABLE c1 (id TEXT);' })
      const [, ...order] = await fault('a/002_two', 'INSERT INTO c1 VALUES (1);')
      assert.match(
        order.at(-1)!,
        /Fix: c\/001_one makes the table c1, and has to come first: write `-- depends: c\/001_one` at the top/,
      )
      await rm(join(folder, 'c'), { recursive: true })

      await add({ 'b/001_one.down.sql': 'DROP TABLE b1;\n\nDROP TABLE nothing;' })
      await refusal(
        rollBack(target.driver, [folder], 1, () => {}),
        /^b\/001_one\.down\.sql failed and was rolled back: .*nothing.* in line 3 \(.*\)\n {2}.*001_one\.down\.sql:3:\d+\n/s,
      )
      await writeFiles(root, {
        'domains/a/seeds/one.sql': "INSERT INTO a1 VALUES ('s', 1);\nINSERT INTO a1 VALUES ('s', 1);",
      })
      await refusal(
        runSeeds(target.driver, [folder], () => {}),
        /^Seed a\/one failed and was rolled back: .*unique.* in line 2 \(.*one\.sql\)\n {2}.*one\.sql:2:1\n/is,
      )
    })

    test('a migration without a statement stays pending, so that it can still be written', async (t) => {
      const { run, add, target, folder, tables } = await withDomains(t, {
        'a/001_one.sql': '-- Says what it will do; later.\n\n',
        'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);',
      })
      const log: string[] = []
      await migrate(target.driver, [folder], (level, message) => log.push(`${level} ${message}`))
      assert.match(
        log[0]!,
        /^WARNING Migration a\/001_one has no statement yet and is not applied: write it \(.*001_one\.sql\)$/,
      )
      assert.deepEqual(await tables(), ['_migrations', 'a2'])
      await add({ 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);' })
      assert.deepEqual(await run(), ['a/001_one'])
    })

    test('pending names what would be applied and changes nothing', async (t) => {
      const { run, driver, folder, add, tables } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);',
      })
      const ids = async () => (await pending(driver, [folder])).map((migration) => migration.id)
      assert.deepEqual(await ids(), ['a/001_one'])
      assert.deepEqual(await tables(), [])
      await run()
      await add({ 'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);' })
      assert.deepEqual(await ids(), ['a/002_two'])
    })

    test('booting the tool migrates in the primary only, and not when told otherwise', async (t) => {
      const { folder, boot, tables } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);' })
      const options: Partial<RuntimeOptions> = { domainsDir: [folder], thread: { kind: 'primary' } }
      await boot({ ...options, thread: { kind: 'lane', index: 0 } })
      const log: LogLine[] = []
      await boot({ ...options, dbAutoMigrate: false, log })
      assert.deepEqual(await tables(), [])
      assert.deepEqual(log.at(-1)?.fields, { migrations: ['a/001_one'] })
      const db = await boot(options)
      assert.deepEqual(await tables(), ['_migrations', 'a1'])
      assert.equal((await db.execute(`INSERT INTO a1 VALUES ('x')`)).rowCount, 1)
    })

    test('a line `-- heddle:` that would have no effect is refused, with the nearest name', async (t) => {
      const { run, add, tables, target, folder, root } = await withDomains(t, {})
      const cases: [string, RegExp][] = [
        ['-- heddle: no_transaction\nVACUUM', /001_one\.sql:1: .*did you mean no-transaction\?/],
        ['-- A\r\n\r\n  --HEDDLE :drafts\r\nVACUUM', /001_one\.sql:3: .*did you mean draft\?/],
        ['-- heddle: without-a-transaction\nVACUUM', /known are draft, no-transaction/],
        ['-- heddle:\nVACUUM', /known are draft, no-transaction/],
        ['VACUUM;\n-- heddle: no-transaction', /:2: .*above the first statement/],
        ['-- heddle: no-transaction\nSELECT 1; SELECT 2', /2 statements: write each into a migration of its own/],
        ['-- heddle: no-transaction\nBEGIN', /it contains BEGIN/],
      ]
      for (const [sql, message] of cases) {
        await add({ 'a/001_one.sql': sql, 'b/001_two.sql': 'CREATE TABLE b1 (id TEXT)' })
        await refusal(run(), message)
      }
      assert.equal((await tables()).includes('b1'), false)
      // What was applied before there were such lines stays applied.
      await add({ 'a/001_one.sql': '-- A\r\n\r\n-- Heddle: No-Transaction\r\nVACUUM;\r\n' })
      assert.deepEqual(await run(), ['a/001_one', 'b/001_two'])
      await writeFiles(root, { 'domains/a/seeds/one.sql': '-- heddle: no-transaction\nVACUUM' })
      await refusal(
        runSeeds(target.driver, [folder], () => {}),
        /seeds\/one\.sql:1: .*leave it out/,
      )
    })

    test('no-transaction: status, down and a changed file are as for others; a text that cannot be read has left nothing', async (t) => {
      const { run, add, target, folder } = await withDomains(t, {
        'a/001_one.sql': 'CREATE TABLE log (entry TEXT);',
        'a/002_alone.sql': `-- heddle: no-transaction\n${words.alone(2)}`,
        'a/002_alone.down.sql': '-- heddle: no-transaction\nVACUUM',
        'a/003_typo.sql': '-- heddle: no-transaction\nVACUUMM log',
      })
      await refusal(run(), /a\/003_typo failed: .*VACUUMM.*in line 2[\s\S]*Correct the file/)
      const status = async () => (await migrationStatus(target.driver, [folder])).map(({ state }) => state)
      assert.deepEqual(await status(), ['applied', 'applied', 'pending'])
      await add({ 'a/003_typo.sql': '-- heddle: no-transaction\nVACUUM' })
      assert.deepEqual(await run(), ['a/003_typo'])
      await rm(join(folder, 'a/migrations/003_typo.sql'))
      assert.deepEqual(await rollBack(target.driver, [folder], 1, () => {}), ['a/002_alone'])
      assert.deepEqual(await status(), ['applied', 'pending', 'missing'])
      await target.driver.transaction((session) =>
        session.record({ id: 'a/002_alone', checksum: 'unfinished 1' }, new Date().toISOString()),
      )
      assert.deepEqual(await status(), ['applied', 'unfinished', 'missing'])
      assert.deepEqual(
        (await pending(target.driver, [folder])).map(({ id }) => id),
        ['a/002_alone'],
      )
      await refusal(run(), /a\/002_alone is unfinished[\s\S]*INVALID[\s\S]*again a\/002_alone[\s\S]*done a\/002_alone/)
      const settled = (id: string, isDone: boolean) => settle(target.driver, [folder], id, isDone, () => {})
      await refusal(settled('a/001_one', false), /a\/001_one is not unfinished/)
      await refusal(settled('a/009_none', true), /no migration a\/009_none/)
      await settled('a/002_alone', true)
      assert.deepEqual(await status(), ['applied', 'applied', 'missing'])
      assert.deepEqual(await run(), [])
      await add({ 'a/002_alone.sql': '-- heddle: no-transaction\nVACUUM -- otherwise' })
      await refusal(run(), /a\/002_alone was changed after it was applied/)
    })

    test('of two processes that migrate without a transaction one waits, and each migration is applied once', async (t) => {
      const { folder, address, add, query } = await withDomains(t, {
        'a/001_log.sql': 'CREATE TABLE log (entry TEXT);',
      })
      const ids = ['a/001_log']
      for (let n = 2; n <= 7; n++) {
        ids.push(`a/00${n}_step`)
        const isAlone = n !== 4
        await add({
          [`a/00${n}_step.sql`]: isAlone
            ? `-- heddle: no-transaction\n${words.alone(n)}`
            : "INSERT INTO log VALUES ('4')",
        })
      }
      const processes = [start(t, address, folder), start(t, address, folder), start(t, address, folder)]
      const lines = processes.map((child) => createInterface({ input: child.stdout! })[Symbol.asyncIterator]())
      for (const line of lines) assert.equal((await line.next()).value, 'ready')
      for (const child of processes) child.stdin!.write('go\n')
      const applied = await Promise.all(lines.map(async (line) => JSON.parse((await line.next()).value) as string[]))
      assert.deepEqual(applied.flat().sort(), ids)
      assert.equal((await query('SELECT entry FROM log')).length, 1)
    })

    test('of two processes that migrate at once one waits, and each migration is applied once', async (t) => {
      const { folder, address, query, add } = await withDomains(t, {})
      const slow =
        'WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200000) INSERT INTO log SELECT'
      await add({ 'a/001_log.sql': 'CREATE TABLE log (entry TEXT);' })
      for (let n = 2; n <= 6; n++) await add({ [`a/00${n}_step.sql`]: `${slow} '${n}:' || max(n) FROM c;` })
      const processes = [start(t, address, folder), start(t, address, folder)]
      const lines = processes.map((child) => createInterface({ input: child.stdout! })[Symbol.asyncIterator]())
      for (const line of lines) assert.equal((await line.next()).value, 'ready')
      for (const child of processes) child.stdin!.write('go\n')
      const applied = await Promise.all(lines.map(async (line) => JSON.parse((await line.next()).value) as string[]))
      const ids = ['a/001_log', ...[2, 3, 4, 5, 6].map((n) => `a/00${n}_step`)]
      assert.deepEqual([...applied[0]!, ...applied[1]!].sort(), ids)
      assert.deepEqual(
        (await query('SELECT entry FROM log')).map(({ entry }) => entry),
        [2, 3, 4, 5, 6].map((n) => `${n}:200000`),
      )
    })
  })
}

async function refusal(work: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(work, (thrown) => {
    assert.ok(thrown instanceof HeddleError)
    assert.match(thrown.code, /^MIGRATION_(?:INVALID|MISNAMED)$/)
    assert.match(thrown.message, message)
    return true
  })
}

/** `migrate-process.ts`. */
export function start(t: TestContext, address: unknown, folder: string): ChildProcess {
  const script = fileURLToPath(new URL('./migrate-process.ts', import.meta.url))
  const child = spawn(process.execPath, [...LOADER, script, JSON.stringify(address), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill()
    await once(child, 'exit')
  })
  return child
}
