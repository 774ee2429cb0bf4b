import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import type { LogLevel } from '../../../src/contracts/logger.ts'
import type { ThreadRef, ToolRuntime } from '../../../src/contracts/tool.ts'
import type { Settings } from '../../../src/core/config/schema.ts'
import PostgresDb from '../../../src/extras/postgres/index.ts'
import SqliteDb from '../../../src/tools/sqlite/index.ts'
import { temporaryFolder } from '../../support/folder.ts'

export interface LogLine {
  level: LogLevel
  message: string
  fields: Record<string, unknown> | undefined
}

/** What the tool uses of its runtime, for one thread. */
export interface RuntimeOptions {
  sqlitePath?: string
  thread?: ThreadRef
  lockMemory?: SharedArrayBuffer
  dbAutoMigrate?: boolean
  domainsDir?: string[]
  log?: LogLine[]
  /** The instance that answers what a heavy statement asks of the primary. */
  primary?: () => SqliteDb
  instrument?: <T extends object>(target: T) => T
  host?: ToolRuntime['host']
  settings?: Partial<Settings>
}

export function runtimeFor(options: RuntimeOptions): ToolRuntime {
  const memory = options.lockMemory ?? new SharedArrayBuffer(64)
  const runtime: Partial<ToolRuntime> = {
    callPrimary: async (method, args) => options.primary?.().serve(method, args),
    thread: options.thread ?? { kind: 'primary' },
    settings: {
      sqlitePath: options.sqlitePath ?? '',
      rdbStatementTimeoutMs: 30_000,
      dbAutoMigrate: options.dbAutoMigrate ?? true,
      domainsDir: options.domainsDir ?? [],
      ...options.settings,
    } as unknown as ToolRuntime['settings'],
    log: (level, message, fields) => void options.log?.push({ level, message, fields }),
    sharedMemory: (name, byteLength) => (name === 'write-lock' ? memory : new SharedArrayBuffer(byteLength)),
    instrument: options.instrument ?? ((target) => target),
    ...(options.host === undefined ? {} : { host: options.host }),
  }
  return runtime as ToolRuntime
}

/** A booted tool on a new file (or on `sqlitePath`), stopped after the test. */
export async function createDb(t: TestContext, options: Partial<RuntimeOptions> = {}): Promise<SqliteDb> {
  const sqlitePath = options.sqlitePath ?? join(temporaryFolder(t), 'data', 'service.db')
  const db: SqliteDb = new SqliteDb(runtimeFor({ primary: () => db, ...options, sqlitePath }))
  t.after(() => db.stop())
  await db.boot()
  return db
}

/** What of a PostgreSQL server the tool has to know. */
export interface ServerAccess {
  host: string
  port: number
  user: string
  password: string
}

export function postgresSettings({ host, port, user, password }: ServerAccess, database: string): Partial<Settings> {
  return {
    rdbHost: host,
    rdbPort: port,
    rdbUser: user,
    rdbPassword: password,
    rdbDatabase: database,
    rdbSchema: 'public',
    rdbMaxPool: 10,
    rdbMinPool: 2,
    rdbStatementTimeoutMs: 30_000,
    rdbPooler: 'none',
    rdbTls: 'off',
    rdbAllowCleartextPassword: false,
    lanes: 1,
    replicaId: 'test',
  }
}

/** A tool on a database of the server, as a lane has it; stopped after the test. It has not booted. */
export function postgresDb(
  t: TestContext,
  server: ServerAccess,
  database: string,
  options: Partial<RuntimeOptions> = {},
): PostgresDb {
  const settings = { ...postgresSettings(server, database), ...options.settings }
  const db = new PostgresDb(runtimeFor({ thread: { kind: 'lane', index: 0 }, ...options, settings }))
  t.after(() => db.stop())
  return db
}

/** Writes files below `folder`; keys are relative paths. */
export async function writeFiles(folder: string, files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
}

/** A promise that another part of the test settles. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
