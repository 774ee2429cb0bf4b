// The rules on tables and migrations: who may name a table, and in which order migrations run.
import { displayPath, errorAt, type Finding } from './finding.ts'
import { shortestCircles } from './import-rules.ts'
import type { Migration, Module, Project } from './project.ts'
import { reached } from './scopes.ts'

/**
 * A table belongs to the domain whose migration creates it. No other domain may create it too or use it in SQL.
 * Tables named `heddle_*` belong to the runtime.
 * Another domain's migration may refer to it and read it, for which it needs `depends`, but may not change it.
 */
export function tableOwnership(project: Project): Finding[] {
  const origins = tableOrigins(project.migrations, true)
  const migrations = project.migrations.map(({ file, domain, tables }) => ({
    file,
    domain,
    tables: tables.filter(({ role }) => role === 'write' || role === 'drop'),
  }))
  return [
    ...[...project.modules, ...migrations].flatMap((source) => strangerTables(source, origins)),
    ...sharedTables(origins),
    ...[...project.modules, ...project.migrations].flatMap(runtimeTables),
  ]
}

/** The place where a table is created. */
interface TableOrigin {
  migration: Migration
  line: number
}

/** Table → the places where it is created, in the order of the migrations. @param isLasting without tables that their own domain drops or renames later */
export function tableOrigins(migrations: readonly Migration[], isLasting = false): Map<string, TableOrigin[]> {
  const origins = new Map<string, TableOrigin[]>()
  for (const migration of migrations) {
    for (const { table, role, line } of migration.tables) {
      const before = origins.get(table) ?? []
      if (role === 'create') origins.set(table, [...before, { migration, line }])
      if (role === 'drop' && isLasting) {
        origins.set(
          table,
          before.filter((origin) => origin.migration.domain !== migration.domain),
        )
      }
    }
  }
  return origins
}

/** A file whose SQL names tables. */
type Source = Pick<Module, 'file' | 'domain' | 'tables'>

function strangerTables(source: Source, origins: ReadonlyMap<string, TableOrigin[]>): Finding[] {
  const findings: Finding[] = []
  for (const { table, line } of source.tables) {
    const owners = origins.get(table)
    if (!owners?.[0] || owners.some(({ migration }) => migration.domain === source.domain)) continue
    const { migration, line: createdLine } = owners[0]
    const owner = `the table '${table}' of the domain '${migration.domain}' (${displayPath(migration.file)}:${createdLine})`
    findings.push(
      errorAt('table-ownership', source.file, line, `SQL of the domain '${source.domain}' touches ${owner}`),
    )
  }
  return findings
}

/** The tables of the runtime change with it, without notice. */
function runtimeTables({ file, domain, tables }: Source): Finding[] {
  return tables
    .filter(({ table }) => /(?:^|\.)heddle_[^.]*$/.test(table))
    .map(({ table, line }) => {
      const message = `SQL of the domain '${domain}' touches the table '${table}' of the runtime: names with heddle_ are its own`
      return errorAt('table-ownership', file, line, message)
    })
}

function sharedTables(origins: ReadonlyMap<string, TableOrigin[]>): Finding[] {
  const findings: Finding[] = []
  for (const [table, [first, ...others]] of origins) {
    for (const { migration, line } of others) {
      if (!first || migration.domain === first.migration.domain) continue
      const place = `${displayPath(first.migration.file)}:${first.line}`
      const message = `the domain '${migration.domain}' creates the table '${table}' of the domain '${first.migration.domain}' (${place})`
      findings.push(errorAt('table-ownership', migration.file, line, message))
    }
  }
  return findings
}

const FILE_NAME = /^(\d{3,})_[A-Za-z0-9_-]+$/

/** Migrations have one order: by number within a domain, and by `depends` lines across domains. */
export function migrationOrder(project: Project): Finding[] {
  const { migrations } = project
  const byId = new Map(migrations.map((migration) => [migration.id, migration]))
  const before = predecessors(migrations, byId)
  return [
    ...nameFindings(migrations),
    ...dependencyFindings(migrations, byId),
    ...shortestCircles(before).map((circle) => circleFinding(circle.map((id) => byId.get(id)!))),
    ...undeclaredUses(migrations, before),
  ]
}

/** Migration → its direct predecessors: the ones that it depends on, and the one before it in its domain. */
function predecessors(migrations: readonly Migration[], byId: ReadonlyMap<string, Migration>): Map<string, string[]> {
  const before = new Map<string, string[]>()
  for (const [index, { id, domain, depends }] of migrations.entries()) {
    const declared = depends.flatMap(({ target }) => (byId.has(target) ? [target] : []))
    const last = migrations[index - 1]
    before.set(id, last?.domain === domain ? [...declared, last.id] : declared)
  }
  return before
}

function nameFindings(migrations: readonly Migration[]): Finding[] {
  const findings: Finding[] = []
  const numbered = new Map<string, Migration>()
  for (const migration of migrations) {
    const number = FILE_NAME.exec(migration.stem)?.[1]
    if (number === undefined) {
      const message = `the file name '${migration.stem}.sql' is not of the form NNN_name.sql`
      findings.push(errorAt('migration-order', migration.file, 1, message))
      continue
    }
    const key = `${migration.domain}/${Number(number)}`
    const first = numbered.get(key)
    if (!first) numbered.set(key, migration)
    else
      findings.push(
        errorAt('migration-order', migration.file, 1, `the number ${number} is taken by ${displayPath(first.file)}`),
      )
  }
  return findings
}

function dependencyFindings(migrations: readonly Migration[], byId: ReadonlyMap<string, Migration>): Finding[] {
  return migrations.flatMap(({ id, file, depends, ignoredDepends }) => [
    ...depends
      .filter(({ target }) => !byId.has(target))
      .map(({ target, line }) =>
        errorAt('migration-order', file, line, `${id} depends on '${target}', which does not exist`),
      ),
    ...ignoredDepends.map(({ target, line }) =>
      errorAt(
        'migration-order',
        file,
        line,
        `the dependency on '${target}' is not followed: it stands below the header`,
      ),
    ),
  ])
}

/** @param circle each migration depends on the next; the first comes again at the end */
function circleFinding(circle: readonly Migration[]): Finding {
  const message = `the dependencies go in a circle: ${circle.map(({ id }) => id).join(' → ')}`
  // The order within a domain is not written down anywhere, so the finding points at a line that is.
  for (const [index, { file, depends }] of circle.slice(0, -1).entries()) {
    const declared = depends.find(({ target }) => target === circle[index + 1]!.id)
    if (declared) return errorAt('migration-order', file, declared.line, message)
  }
  return errorAt('migration-order', circle[0]!.file, 1, message)
}

function undeclaredUses(migrations: readonly Migration[], before: ReadonlyMap<string, string[]>): Finding[] {
  const origins = tableOrigins(migrations)
  return migrations.flatMap((migration) => {
    const findings: Finding[] = []
    const named = new Set<string>()
    for (const { table, role, line } of migration.tables) {
      const creators = role === 'create' ? [] : (origins.get(table) ?? [])
      if (creators.length === 0 || named.has(table)) continue
      named.add(table)
      if (creators.some((creator) => creator.migration.domain === migration.domain)) continue
      const earlier = reached(before.get(migration.id) ?? [], (id) => before.get(id) ?? [])
      if (creators.some((creator) => earlier.has(creator.migration.id))) continue
      const wanted = creators[0]!.migration.id
      const message = `${migration.id} needs the table '${table}' that ${wanted} creates: add '-- depends: ${wanted}'`
      findings.push(errorAt('migration-order', migration.file, line, message))
    }
    return findings
  })
}
