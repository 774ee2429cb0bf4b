import { compareText } from './finding.ts'
import type { Migration } from './project.ts'

/** The place where a table is created. */
export interface TableOrigin {
  migration: Migration
  line: number
}

/** Table → the places where it is created, in the order of the migrations. */
export function tableOrigins(migrations: readonly Migration[]): Map<string, TableOrigin[]> {
  const origins = new Map<string, TableOrigin[]>()
  for (const migration of migrations) {
    for (const { table, role, line } of migration.tables) {
      if (role === 'create') origins.set(table, [...(origins.get(table) ?? []), { migration, line }])
    }
  }
  return origins
}

/** Table → the places where it is created, without tables that their own domain drops or renames later. */
export function lastingOrigins(migrations: readonly Migration[]): Map<string, TableOrigin[]> {
  const origins = new Map<string, TableOrigin[]>()
  for (const migration of [...migrations].sort(byDomainAndNumber)) {
    for (const { table, role, line } of migration.tables) {
      const before = origins.get(table) ?? []
      if (role === 'create') origins.set(table, [...before, { migration, line }])
      if (role !== 'drop') continue
      const left = before.filter((origin) => origin.migration.domain !== migration.domain)
      if (left.length > 0) origins.set(table, left)
      else origins.delete(table)
    }
  }
  return origins
}

/** The order in which migrations run, as far as the domains alone decide it. */
export function byDomainAndNumber(a: Migration, b: Migration): number {
  return compareText(a.domain, b.domain) || numberOf(a) - numberOf(b) || compareText(a.stem, b.stem)
}

function numberOf({ stem }: Migration): number {
  return Number.parseInt(stem, 10) || 0
}
