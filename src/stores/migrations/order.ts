import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Migration } from './migration.ts'

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
