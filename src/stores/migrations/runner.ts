// Applies migrations, takes them back, lists them; seeds.

import { join } from 'node:path'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { shown } from '../../core/errors/places.ts'
import { type DomainPart, partsOf } from '../../core/modules/domains.ts'
import { readText, TextFault } from '../../preload/text-file.cjs'
import { statementsIn } from '../sql/statement.ts'
import { ANY_DIALECT } from '../sql/tokens.ts'
import type { Migration, MigrationDriver, MigrationSession, Script } from './driver.ts'
import {
  DOWN_SUFFIX,
  discoverMigrations,
  filesOf,
  isAlone,
  isRecorded,
  orderMigrations,
  requireDirectives,
} from './files.ts'
import { scriptFaultText } from './script-fault.ts'

/**
 * `changed`: its text is another one than that which was applied. `missing`: it was applied, and has no file any more. `unfinished`: it was
 * begun without a transaction, and has not ended.
 */
type MigrationState = 'applied' | 'pending' | 'changed' | 'missing' | 'unfinished'

interface MigrationStatus {
  id: string
  state: MigrationState
  /** It has a `NNN_name.down.sql`. */
  hasDown: boolean
}

/** All migrations, in the order in which they are applied; those without a file at the end. @throws MIGRATION_INVALID as `migrate` does */
export async function migrationStatus(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
): Promise<MigrationStatus[]> {
  const recorded = await driver.applied()
  const found = orderMigrations(discoverMigrations(domainsFolders)).map((migration) => {
    const { id, down } = migration
    const known = recorded.get(id)
    recorded.delete(id)
    const state = known === undefined ? 'pending' : stateOf(migration, known)
    return { id, state, hasDown: down !== null }
  })
  const missing = [...recorded.keys()].sort().map((id) => ({ id, state: 'missing' as const, hasDown: false }))
  return [...found, ...missing]
}

function stateOf(migration: Migration, recorded: string): MigrationState {
  if (isUnfinished(recorded)) return 'unfinished'
  return isRecorded(migration, recorded) ? 'applied' : 'changed'
}

/**
 * Takes back the migrations that were applied last, in the reverse of their order, each by its `NNN_name.down.sql` and in its own transaction.
 * @param count how many
 * @returns their ids
 * @throws MIGRATION_INVALID before anything is taken back when one of them has no such file, and for one that fails, which is rolled back
 */
export async function rollBack(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  count: number,
  log: MigrationLog,
): Promise<string[]> {
  const recorded = await driver.applied()
  const applied = orderMigrations(discoverMigrations(domainsFolders)).filter(({ id }) => recorded.has(id))
  const chosen = applied.slice(Math.max(0, applied.length - count)).reverse()
  const downs = chosen.map((migration) => ({ migration, down: downOf(migration) }))
  for (const { migration, down } of downs) await revert(driver, migration, down, log)
  return chosen.map(({ id }) => id)
}

/**
 * Takes one migration back by its `NNN_name.down.sql`, and forgets it, so that it is applied anew as it is now.
 * @param id of one that is applied; undefined: the one that was changed since, or else the last one
 * @throws MIGRATION_INVALID when it is not applied, has no such file, or another one that is applied comes after it
 */
export async function takeBack(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  id: string | undefined,
  log: MigrationLog,
): Promise<void> {
  const recorded = await driver.applied()
  const applied = orderMigrations(discoverMigrations(domainsFolders)).filter((each) => recorded.has(each.id))
  const changed = applied.find((each) => !isRecorded(each, recorded.get(each.id)!))
  const chosen = id === undefined ? (changed ?? applied.at(-1)) : applied.find((each) => each.id === id)
  if (chosen === undefined) throw invalid(`${id ?? 'No migration'} is not applied: there is nothing to take back`)
  const later = applied.slice(applied.indexOf(chosen) + 1).find((each) => isAfter(each, chosen))
  if (later !== undefined)
    throw invalid(
      `${later.id} is applied and comes after ${chosen.id}: take that one back first, or begin anew: npm run migrate -- reset`,
    )
  await revert(driver, chosen, downOf(chosen), log)
}

async function revert(driver: MigrationDriver, migration: Migration, down: string, log: MigrationLog): Promise<void> {
  requireDirectives(down, downPath(migration), ['no-transaction'])
  if (isAlone(down)) {
    const script = { what: `${migration.id}.down.sql`, sql: down, path: downPath(migration), others: [] }
    const isGone = await aloneIn(
      driver,
      migration,
      script,
      (recorded) => recorded !== null,
      async () => {},
    )
    if (isGone) log('INFO', `Took back migration ${migration.id}`)
    return
  }
  try {
    await driver.transaction(async (session) => {
      await session.run(down)
      await session.forget(migration.id)
    })
  } catch (thrown) {
    const what = `${migration.id}.down.sql failed and was rolled back`
    const message = scriptFaultText(what, thrown, { path: downPath(migration), sql: down })
    throw invalid(message, thrown)
  }
  log('INFO', `Took back migration ${migration.id}`)
}

function downOf(migration: Migration): string {
  const { down } = migration
  if (down !== null) return runnable(down)
  throw invalid(`Migration ${migration.id} cannot be taken back: write ${downPath(migration)}`)
}

function runnable({ sql, fault }: Script): string {
  if (fault !== null) throw invalid(fault)
  return sql
}

function downPath({ path }: Migration): string {
  return path.replace(/\.sql$/, DOWN_SUFFIX)
}

/**
 * Runs `<domain>/seeds/*.sql`, each in its own transaction and by file name: first those of the domains whose migrations come first. Nothing is
 * recorded: a seed runs each time, so it should leave alone what is there (`ON CONFLICT DO NOTHING`).
 * @returns the seeds that ran, as `<domain>/<name>`
 * @throws MIGRATION_INVALID for one that fails, which is rolled back (those before it stay)
 */
export async function runSeeds(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  log: MigrationLog,
): Promise<string[]> {
  const order = [...new Set(orderMigrations(discoverMigrations(domainsFolders)).map(({ domain }) => domain))]
  const done: string[] = []
  for (const { id, path } of discoverSeeds(domainsFolders, order)) {
    const text = seedIn(path)
    requireDirectives(text, path, [])
    try {
      await driver.transaction((session) => session.run(text))
    } catch (thrown) {
      const message = scriptFaultText(`Seed ${id} failed and was rolled back`, thrown, { path, sql: text })
      throw invalid(message, thrown)
    }
    log('INFO', `Ran seed ${id}`)
    done.push(id)
  }
  return done
}

function seedIn(path: string): string {
  try {
    return readText(path)
  } catch (error) {
    if (error instanceof TextFault) throw invalid(error.message)
    throw error
  }
}

function discoverSeeds(domainsFolders: readonly string[], order: readonly string[]) {
  const folders = domainsFolders.flatMap((root) => partsOf(root, 'seeds'))
  const seeds = folders.flatMap(({ domain, path }) =>
    filesOf(path).map((name) => ({ id: `${domain}/${name.slice(0, -4)}`, domain, path: join(path, name) })),
  )
  // A domain without migrations comes last.
  const place = ({ domain }: DomainPart): number => (order.includes(domain) ? order.indexOf(domain) : order.length)
  return seeds.sort((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1))
}

type MigrationLog = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/**
 * Applies pending migrations, each in its own transaction together with its row in `_migrations`. One without a statement stays pending.
 * @param domainsFolders folders with `<domain>/migrations/NNN_name.sql`
 * @param leavesDrafts a draft, and what comes after it, is told and not applied: somebody is about to write it
 * @returns the ids that this call applied, in their order
 * @throws MIGRATION_INVALID before anything is applied, for a cycle, a missing dependency or an applied file that has changed; and for a
 * migration that fails, which is rolled back (those before it stay applied). DbError `unavailable` or `timeout` when the failure was
 * not the migration's fault
 */
export async function migrate(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  log: MigrationLog,
  leavesDrafts = false,
): Promise<string[]> {
  const applied: string[] = []
  const left: Migration[] = []
  const all = orderMigrations(discoverMigrations(domainsFolders))
  // Another process may be in the middle of one.
  const isInMiddle = [...(await driver.applied()).values()].some(isUnfinished)
  if (isInMiddle && driver.aloneRefusal === null) await driver.alone(async () => {})
  const waiting = await pendingOf(driver, all, isApplied)
  for (const { id, fault } of all) if (fault !== null) log('WARNING', `Migration ${id}: ${fault} ${APPLIED_OTHERWISE}`)
  for (const [n, migration] of waiting.entries()) {
    if (leavesDrafts && (migration.isDraft || left.some((draft) => isAfter(migration, draft)))) {
      left.push(migration)
      if (migration.isDraft)
        log(
          'WARNING',
          `Migration ${migration.id} is a draft and is not applied: write it, and remove the line \`-- heddle: draft\` (${shown(migration.path)}). A start applies it as it is`,
        )
      continue
    }
    if (statementsIn(migration.sql, ANY_DIALECT).length === 0) {
      // An editor may have begun to save it. Applied, it could not be written any more.
      log(
        'WARNING',
        `Migration ${migration.id} has no statement yet and is not applied: write it (${shown(migration.path)})`,
      )
      continue
    }
    const startMs = performance.now()
    // A terminal shows these records on one line: which migration is running, and how many there are.
    log('DEBUG', `Applying migration ${migration.id}`, { done: n, of: waiting.length })
    const applying = isAlone(migration.sql) ? applyAlone : apply
    if (!(await applying(driver, migration, all))) continue
    applied.push(migration.id)
    const duration_ms = Math.round(performance.now() - startMs)
    log('INFO', `Applied migration ${migration.id}`, { done: n + 1, of: waiting.length, duration_ms })
  }
  return applied
}

const APPLIED_OTHERWISE =
  'An earlier version has applied it with U+FFFD in place of such bytes. Save it as UTF-8, which stays the same migration, and correct the values in the database by a new one'

/** True where one must be applied before the other. Both are in the order of `orderMigrations`. */
const isAfter = ({ domain, depends }: Migration, earlier: Migration): boolean =>
  domain === earlier.domain || depends.includes(earlier.id)

/**
 * Migrations that are not applied yet, in the order in which they would be. Changes nothing.
 * @throws MIGRATION_INVALID as `migrate` does before it applies anything
 */
export async function pending(driver: MigrationDriver, domainsFolders: readonly string[]): Promise<Migration[]> {
  // One that is unfinished is pending: another process may be in the middle of it.
  const isEnded = (migration: Migration, recorded: string | null): boolean =>
    !isUnfinished(recorded) && isApplied(migration, recorded)
  return pendingOf(driver, orderMigrations(discoverMigrations(domainsFolders)), isEnded)
}

async function pendingOf(
  driver: MigrationDriver,
  migrations: readonly Migration[],
  isEnded: typeof isApplied,
): Promise<Migration[]> {
  const recorded = await driver.applied()
  const waiting = migrations.filter((migration) => !isEnded(migration, recorded.get(migration.id) ?? null))
  // Before the first one is applied.
  for (const migration of waiting) {
    runnable(migration)
    requireDirectives(migration.sql, migration.path)
  }
  return waiting
}

/** False when another process has applied it in the meantime. */
async function apply(driver: MigrationDriver, migration: Migration, all: readonly Migration[]): Promise<boolean> {
  try {
    return await driver.transaction(async (session) => {
      await session.createTable()
      if (isApplied(migration, await session.checksumOf(migration.id))) return false
      await session.run(migration.sql)
      await session.record(migration, new Date().toISOString())
      return true
    })
  } catch (thrown) {
    if (thrown instanceof HeddleError && thrown.code === 'MIGRATION_INVALID') throw thrown
    const what = `Migration ${migration.id} failed and was rolled back`
    if (isOutside(thrown)) {
      throw new DbError(thrown.kind, `${what}: ${thrown.message} (${shown(migration.path)})`, { cause: thrown })
    }
    const others = all.filter(({ id }) => id !== migration.id)
    const message = scriptFaultText(what, thrown, migration, others)
    throw invalid(message, thrown)
  }
}

/** Stands before the checksum of a migration without a transaction until it has ended. */
const UNFINISHED = 'unfinished '
const isUnfinished = (recorded: string | undefined | null): boolean => recorded?.startsWith(UNFINISHED) === true

/** @returns as `apply` */
function applyAlone(driver: MigrationDriver, migration: Migration, all: readonly Migration[]): Promise<boolean> {
  const { id, sql, path } = migration
  const isWanted = (recorded: string | null): boolean => !isApplied(migration, recorded)
  const end = (session: MigrationSession) => session.record(migration, new Date().toISOString())
  const others = all.filter((other) => other.id !== id)
  return aloneIn(driver, migration, { what: `Migration ${id}`, sql, path, others }, isWanted, end)
}

interface AloneScript {
  /** For example `Migration shop/001_orders`. */
  what: string
  sql: string
  path: string
  others: readonly Migration[]
}

/**
 * Runs a statement without a transaction. How much of it has taken effect when it is cut off, nobody knows, so the migration is recorded as
 * unfinished first.
 * @param end records what it has done
 * @returns false when it is not wanted any more
 */
async function aloneIn(
  driver: MigrationDriver,
  { id, checksum }: Migration,
  { what, sql, path, others }: AloneScript,
  isWanted: (recorded: string | null) => boolean,
  end: (session: MigrationSession) => Promise<void>,
): Promise<boolean> {
  const where = `(${shown(path)})`
  const refusal = driver.aloneRefusal
  if (refusal !== null) throw invalid(`${what} runs without a transaction, and cannot here: ${refusal} ${where}`)
  try {
    driver.requireOne(sql)
  } catch (thrown) {
    throw invalid(`${what} runs without a transaction, and cannot: ${messageOf(thrown)} ${where}`, thrown)
  }
  return await driver.alone(async () => {
    let before: string | null = null
    const begins = await driver.transaction(async (session) => {
      await session.createTable()
      before = await session.checksumOf(id)
      if (!isWanted(before)) return false
      await session.forget(id)
      await session.record({ id, checksum: UNFINISHED + checksum }, new Date().toISOString())
      return true
    })
    if (!begins) return false
    try {
      await driver.runAlone(sql)
    } catch (thrown) {
      if (!driver.hasLeftNothing(thrown))
        throw invalid(
          `${what} failed without a transaction: ${messageOf(thrown)} ${where}\n${unfinishedFix(id)}`,
          thrown,
        )
      await driver.transaction(async (session) => {
        await session.forget(id)
        if (before !== null) await session.record({ id, checksum: before }, new Date().toISOString())
      })
      throw invalid(scriptFaultText(`${what} failed`, thrown, { path, sql }, others), thrown)
    }
    await driver.transaction(async (session) => {
      await session.forget(id)
      await end(session)
    })
    return true
  })
}

const unfinishedFix = (id: string): string =>
  `  Fix: look at what it has left in the database: CREATE INDEX CONCURRENTLY may leave an INVALID index (\\d of the table in psql), which writes maintain and no query uses: DROP INDEX. Then tell which it is:
    npm run migrate -- again ${id}   what it has left is undone: the next run runs it again
    npm run migrate -- done ${id}    it has taken effect, or you have done it by hand: it counts as applied`

/**
 * Ends the state of a migration without a transaction that was begun and has not ended.
 * @param isDone it counts as applied; otherwise it is pending again
 * @throws MIGRATION_INVALID when it is in another state
 */
export async function settle(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  id: string,
  isDone: boolean,
  log: MigrationLog,
): Promise<void> {
  const migration = discoverMigrations(domainsFolders).find((each) => each.id === id)
  if (isDone && migration === undefined) throw invalid(`There is no migration ${id}`)
  if (driver.aloneRefusal !== null) throw invalid(`${id} cannot be settled here: ${driver.aloneRefusal}`)
  await driver.alone(() =>
    driver.transaction(async (session) => {
      await session.createTable()
      if (!isUnfinished(await session.checksumOf(id)))
        throw invalid(`${id} is not unfinished: see npm run migrate -- status`)
      await session.forget(id)
      if (isDone) await session.record(migration!, new Date().toISOString())
    }),
  )
  log('INFO', `Migration ${id} ${isDone ? 'counts as applied' : 'is pending again'}`)
}

/** The migration itself is right: the server was lost, or another process held a lock that it needs. */
function isOutside(thrown: unknown): thrown is DbError {
  return thrown instanceof DbError && thrown.isPassing
}

function isApplied(migration: Migration, recorded: string | null): boolean {
  if (recorded === null) return false
  if (isRecorded(migration, recorded)) return true
  if (isUnfinished(recorded)) {
    throw invalid(
      `Migration ${migration.id} is unfinished: it was begun without a transaction, and failed or was cut off (${shown(migration.path)})\n${unfinishedFix(migration.id)}`,
    )
  }
  throw invalid(
    `Migration ${migration.id} was changed after it was applied: put ${shown(migration.path)} back as it was, and write a new migration; or, in development, take it back and apply it anew: npm run migrate -- redo ${migration.id}`,
  )
}

/**
 * Applies pending migrations when the process starts. With DB_AUTO_MIGRATE=false it logs what is pending and changes nothing.
 * @returns the ids of those that are pending
 * @throws as `migrate`
 */
export async function migrateOrReport(
  driver: MigrationDriver,
  { domainsDir, dbAutoMigrate }: Pick<Settings, 'domainsDir' | 'dbAutoMigrate'>,
  log: MigrationLog,
): Promise<string[]> {
  if (dbAutoMigrate) {
    await migrate(driver, domainsDir, log)
    return []
  }
  try {
    const migrations = await wanted(driver, domainsDir)
    if (migrations.length > 0) log('WARNING', 'Migrations are pending, and DB_AUTO_MIGRATE is false', { migrations })
    return migrations
  } catch (thrown) {
    // Another process is responsible for the schema, so this one starts anyway.
    log('ERROR', messageOf(thrown))
    return []
  }
}

/** The ids of those that are pending and have a statement: one without is never applied. */
async function wanted(driver: MigrationDriver, domainsFolders: readonly string[]): Promise<string[]> {
  const waiting = await pending(driver, domainsFolders)
  return waiting.filter(({ sql }) => statementsIn(sql, ANY_DIALECT).length > 0).map(({ id }) => id)
}

/** How often it is looked whether another process has applied what is pending, milliseconds. */
const LOOK_MS = 2000

/** With DB_AUTO_MIGRATE=false: what another process is to apply before this one can serve. */
export class PendingMigrations {
  #waiting: readonly string[] = []
  #timer: NodeJS.Timeout | undefined

  /** Why the process should get no requests; null when nothing is pending. */
  get reason(): string | null {
    if (this.#waiting.length === 0) return null
    return `migrations are pending, and DB_AUTO_MIGRATE is false: ${this.#waiting.join(', ')}`
  }

  /** @param migrating gives the driver */
  watch(
    waiting: readonly string[],
    domainsFolders: readonly string[],
    migrating: <T>(work: (driver: MigrationDriver) => Promise<T>) => Promise<T>,
    log: MigrationLog,
  ): void {
    this.#waiting = waiting
    clearInterval(this.#timer)
    if (waiting.length === 0) return
    let isLooking = false
    this.#timer = setInterval(async () => {
      if (isLooking) return
      isLooking = true
      try {
        this.#waiting = await migrating((driver) => wanted(driver, domainsFolders))
        if (this.#waiting.length === 0) {
          clearInterval(this.#timer)
          log('INFO', 'No migration is pending any more')
        }
      } catch {
        // The database is away: it is looked again.
      }
      isLooking = false
    }, LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

const invalid = (message: string, cause?: unknown): HeddleError =>
  new HeddleError('MIGRATION_INVALID', message, { cause })
