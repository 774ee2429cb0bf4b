// Finds migrations and puts them in order.
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { nearestName } from '../../core/config/nearest-name.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { entriesOf, partsOf } from '../../core/modules/domains.ts'
import { readText, TextFault } from '../../preload/text-file.cjs'
import type { Migration, Script } from './driver.ts'

const FILE_NAME = /^\d{3,}_[A-Za-z0-9_-]+\.sql$/
/** Takes back the migration of the same name. */
export const DOWN_SUFFIX = '.down.sql'
const DEPENDS = /^--\s*depends\s*:(.*)$/i
/** A line of somebody who has yet to write it; it does not count as part of its text. */
export const DRAFT = /^[ \t]*--\s*heddle\s*:\s*draft[ \t]*(?:\r?\n|$)/im
const DIRECTIVE = /^--\s*heddle\s*:(.*)$/i
const DIRECTIVES = ['draft', 'no-transaction'] as const
const ID = /^[^\s/]+\/\d{3,}_[A-Za-z0-9_-]+$/

/**
 * All migrations below the domains folders, in the order of their domains' names and their file numbers.
 * A folder that does not exist has none.
 * @throws MIGRATION_MISNAMED for what is no file named `NNN_name.sql`, or one id in two folders; MIGRATION_INVALID for a malformed header
 */
export function discoverMigrations(domainsFolders: readonly string[]): Migration[] {
  const byId = new Map<string, Migration>()
  for (const folder of domainsFolders) {
    for (const { domain, path } of partsOf(folder, 'migrations')) {
      for (const migration of migrationsOf(domain, path)) {
        const other = byId.get(migration.id)
        if (other && other.path !== migration.path) {
          throw misnamed(`Two files are the migration ${migration.id}: ${other.path} and ${migration.path}`)
        }
        byId.set(migration.id, migration)
      }
    }
  }
  return [...byId.values()].sort(byDomainAndNumber)
}

function migrationsOf(domain: string, folder: string): Migration[] {
  const migrations: Migration[] = []
  const names = filesOf(folder)
  for (const name of names) {
    const path = resolve(folder, name)
    if (name.endsWith(DOWN_SUFFIX)) {
      const up = name.replace(DOWN_SUFFIX, '.sql')
      if (!names.includes(up)) throw misnamed(`${path}: there is no ${up} that it takes back`)
      continue
    }
    if (!FILE_NAME.test(name))
      throw misnamed(`${path}: a migration's file is named NNN_name.sql, for example 001_create.sql`)
    const { sql, fault } = scriptIn(path)
    const stem = name.slice(0, -'.sql'.length)
    const downName = stem + DOWN_SUFFIX
    const down = names.includes(downName) ? scriptIn(resolve(folder, downName)) : null
    const depends = dependsOf(sql, path)
    const isDraft = DRAFT.test(sql)
    const checksum = checksumOf(sql)
    migrations.push({ id: `${domain}/${stem}`, domain, path, sql, fault, checksum, down, isDraft, depends })
  }
  return migrations
}

/** @returns `fault` of a file that is not UTF-8, and its text with characters replaced: it is not run, and known by its checksum if it was */
function scriptIn(path: string): Script {
  try {
    return { sql: readText(path), fault: null }
  } catch (error) {
    if (!(error instanceof TextFault)) throw error
    return { sql: readFileSync(path).toString(), fault: error.message }
  }
}

/** The header ends before the first line that is neither blank nor a `--` comment. */
function headerOf(sql: string): string[] {
  const lines = sql.split('\n').map((line) => line.trim())
  const end = lines.findIndex((line) => line !== '' && !line.startsWith('--'))
  return end < 0 ? lines : lines.slice(0, end)
}

const directiveIn = (line: string): string | undefined => DIRECTIVE.exec(line.trim())?.[1]?.trim().toLowerCase()

/** Its header has `-- heddle: no-transaction`: the statement runs outside of a transaction. */
export function isAlone(sql: string): boolean {
  return headerOf(sql).some((line) => directiveIn(line) === 'no-transaction')
}

/**
 * @param known the directives that this file may have
 * @throws MIGRATION_INVALID for a line `-- heddle:` that would have no effect: of another name, or `no-transaction` behind the header
 */
export function requireDirectives(sql: string, path: string, known: readonly string[] = DIRECTIVES): void {
  const header = headerOf(sql).length
  for (const [n, line] of sql.split('\n').entries()) {
    const found = directiveIn(line)
    if (found === undefined) continue
    const where = `${path}:${n + 1}: "${line.trim()}"`
    if (!known.includes(found)) {
      const nearest = nearestName(found, known)
      const fix =
        known.length === 0
          ? 'leave it out'
          : nearest === undefined
            ? `known are ${known.join(', ')}`
            : `did you mean ${nearest}?`
      throw new HeddleError('MIGRATION_INVALID', `${where} is not known here: ${fix}`)
    }
    if (found === 'no-transaction' && n >= header)
      throw new HeddleError('MIGRATION_INVALID', `${where} has no effect there: write it above the first statement`)
  }
}

function dependsOf(sql: string, path: string): string[] {
  const depends: string[] = []
  for (const line of headerOf(sql)) {
    const target = DEPENDS.exec(line)?.[1]?.trim()
    if (target === undefined) continue
    if (!ID.test(target))
      throw new HeddleError('MIGRATION_INVALID', `${path}: "-- depends: ${target}" does not name <domain>/<NNN_name>`)
    depends.push(target)
  }
  return depends
}

/**
 * True when this is the text that was applied. Versions before this one counted a byte order mark, and read Latin-1 with its characters replaced:
 * a file that was applied so may have been saved as UTF-8 since.
 */
export function isRecorded({ sql, checksum }: Pick<Migration, 'sql' | 'checksum'>, recorded: string): boolean {
  if (recorded === checksum || recorded === checksumOf(`\ufeff${sql}`)) return true
  const isLatin1 = /[\x80-\xff]/.test(sql) && !/[^\0-\xff]/.test(sql)
  return isLatin1 && recorded === checksumOf(Buffer.from(sql, 'latin1').toString())
}

function checksumOf(sql: string): string {
  return createHash('sha256').update(sql.replaceAll('\r\n', '\n').replace(DRAFT, '')).digest('hex')
}

function byDomainAndNumber(a: Migration, b: Migration): number {
  if (a.domain !== b.domain) return a.domain < b.domain ? -1 : 1
  return numberOf(a) - numberOf(b) || (a.id < b.id ? -1 : 1)
}

function numberOf(migration: Migration): number {
  return Number.parseInt(migration.id.slice(migration.domain.length + 1), 10)
}

/** The SQL files of a folder, also those that a link leads to. */
export function filesOf(folder: string): string[] {
  const names = entriesOf(folder).map(({ name }) => name)
  const scripts = names.filter((name) => name.endsWith('.sql') && !name.startsWith('.'))
  // A pipe would block until somebody writes, and a device has no end.
  const other = scripts.find((name) => !statSync(join(folder, name)).isFile())
  if (other !== undefined) throw misnamed(`${resolve(folder, other)} is not a file`)
  return scripts
}

function misnamed(message: string): HeddleError {
  return new HeddleError('MIGRATION_MISNAMED', message)
}

/**
 * Sorts migrations topologically: within a domain in the given order, across domains by `depends`. Otherwise the given order is kept.
 * @param migrations in the order of `discoverMigrations`
 * @throws MIGRATION_INVALID that names the missing dependency, or the cycle
 */
export function orderMigrations(migrations: readonly Migration[]): Migration[] {
  const before = predecessors(migrations)
  const ordered: Migration[] = []
  const done = new Set<string>()
  /** The chain of dependencies that is being followed. A migration that comes twice closes a cycle. */
  const path: string[] = []

  function visit(migration: Migration): void {
    if (done.has(migration.id)) return
    const start = path.indexOf(migration.id)
    if (start >= 0) throw cycle([...path.slice(start), migration.id])
    path.push(migration.id)
    for (const needed of before.get(migration.id) ?? []) visit(needed)
    path.pop()
    done.add(migration.id)
    ordered.push(migration)
  }

  for (const migration of migrations) visit(migration)
  return ordered
}

/** For each migration the ones that must be applied directly before it. */
function predecessors(migrations: readonly Migration[]): Map<string, Migration[]> {
  const byId = new Map(migrations.map((migration) => [migration.id, migration]))
  const lastOfDomain = new Map<string, Migration>()
  const before = new Map<string, Migration[]>()
  for (const migration of migrations) {
    const needed = migration.depends.map((id) => {
      const target = byId.get(id)
      if (target) return target
      throw new HeddleError(
        'MIGRATION_INVALID',
        `${migration.id} depends on ${id}, which does not exist (${migration.path})`,
      )
    })
    const previous = lastOfDomain.get(migration.domain)
    before.set(migration.id, previous ? [previous, ...needed] : needed)
    lastOfDomain.set(migration.domain, migration)
  }
  return before
}

function cycle(ids: readonly string[]): HeddleError {
  return new HeddleError('MIGRATION_INVALID', `Migrations depend on each other in a circle: ${ids.join(' → ')}`)
}
