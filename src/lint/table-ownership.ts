import { displayPath, errorAt, type Finding } from './finding.ts'
import type { Migration, Module, Project } from './project.ts'

/** Where a table is created. */
export interface TableOrigin {
  migration: Migration
  line: number
}

const RULE = 'table-ownership'

/** A table belongs to the domain whose migration creates it: no other domain's SQL touches it or creates it too. */
export function tableOwnership(project: Project): Finding[] {
  const origins = tableOrigins(project.migrations)
  return [...project.modules.flatMap((module) => strangerTables(module, origins)), ...sharedTables(origins)]
}

/** Table → where it is created, in the order of the migrations. */
export function tableOrigins(migrations: readonly Migration[]): Map<string, TableOrigin[]> {
  const origins = new Map<string, TableOrigin[]>()
  for (const migration of migrations) {
    for (const { table, role, line } of migration.tables) {
      if (role === 'create') origins.set(table, [...(origins.get(table) ?? []), { migration, line }])
    }
  }
  return origins
}

function strangerTables(module: Module, origins: ReadonlyMap<string, TableOrigin[]>): Finding[] {
  const findings: Finding[] = []
  for (const { table, line } of module.tables) {
    const owners = origins.get(table)
    if (!owners || owners.some(({ migration }) => migration.domain === module.domain)) continue
    const { migration, line: createdLine } = owners[0]!
    const owner = `the table '${table}' of the domain '${migration.domain}' (${displayPath(migration.file)}:${createdLine})`
    findings.push(errorAt(RULE, module.file, line, `SQL of the domain '${module.domain}' touches ${owner}`))
  }
  return findings
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
