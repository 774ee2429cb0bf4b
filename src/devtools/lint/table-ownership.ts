import { displayPath, errorAt, type Finding } from './finding.ts'
import type { Migration, Module, Project } from './project.ts'

const RULE = 'table-ownership'

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
    findings.push(errorAt(RULE, source.file, line, `SQL of the domain '${source.domain}' touches ${owner}`))
  }
  return findings
}

/** The tables of the runtime change with it, without notice. */
function runtimeTables({ file, domain, tables }: Source): Finding[] {
  return tables
    .filter(({ table }) => /(?:^|\.)heddle_[^.]*$/.test(table))
    .map(({ table, line }) => {
      const message = `SQL of the domain '${domain}' touches the table '${table}' of the runtime: names with heddle_ are its own`
      return errorAt(RULE, file, line, message)
    })
}

function sharedTables(origins: ReadonlyMap<string, TableOrigin[]>): Finding[] {
  const findings: Finding[] = []
  for (const [table, [first, ...others]] of origins) {
    for (const { migration, line } of others) {
      if (!first || migration.domain === first.migration.domain) continue
      const place = `${displayPath(first.migration.file)}:${first.line}`
      const message = `the domain '${migration.domain}' creates the table '${table}' of the domain '${first.migration.domain}' (${place})`
      findings.push(errorAt(RULE, migration.file, line, message))
    }
  }
  return findings
}
