import { displayPath, errorAt, type Finding } from './finding.ts'
import type { Migration, Project } from './project.ts'
import { byDomainAndNumber, tableOrigins } from './table-origins.ts'

const RULE = 'migration-order'
const FILE_NAME = /^(\d{3,})_[A-Za-z0-9_-]+$/

/** Migrations have one order: by number within a domain, and by `depends` lines across domains. */
export function migrationOrder(project: Project): Finding[] {
  const { migrations } = project
  const byId = new Map(migrations.map((migration) => [migration.id, migration]))
  const before = predecessors(migrations, byId)
  return [
    ...nameFindings(migrations),
    ...dependencyFindings(migrations, byId),
    ...cycles(migrations, before),
    ...undeclaredUses(migrations, before),
  ]
}

/** Migration → its direct predecessors: the one before it in its domain, and the ones that it depends on. */
function predecessors(
  migrations: readonly Migration[],
  byId: ReadonlyMap<string, Migration>,
): Map<string, Migration[]> {
  const last = new Map<string, Migration>()
  const before = new Map<string, Migration[]>()
  for (const migration of [...migrations].sort(byDomainAndNumber)) {
    const inDomain = last.get(migration.domain)
    const declared = migration.depends.flatMap(({ target }) => byId.get(target) ?? [])
    before.set(migration.id, inDomain ? [...declared, inDomain] : declared)
    last.set(migration.domain, migration)
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
      findings.push(errorAt(RULE, migration.file, 1, message))
      continue
    }
    const key = `${migration.domain}/${Number(number)}`
    const first = numbered.get(key)
    if (!first) numbered.set(key, migration)
    else findings.push(errorAt(RULE, migration.file, 1, `the number ${number} is taken by ${displayPath(first.file)}`))
  }
  return findings
}

function dependencyFindings(migrations: readonly Migration[], byId: ReadonlyMap<string, Migration>): Finding[] {
  return migrations.flatMap(({ id, file, depends, ignoredDepends }) => [
    ...depends
      .filter(({ target }) => !byId.has(target))
      .map(({ target, line }) => errorAt(RULE, file, line, `${id} depends on '${target}', which does not exist`)),
    ...ignoredDepends.map(({ target, line }) =>
      errorAt(RULE, file, line, `the dependency on '${target}' is not followed: it stands below the header`),
    ),
  ])
}

/** Each cycle once, found at the dependency that closes it. */
function cycles(migrations: readonly Migration[], before: ReadonlyMap<string, Migration[]>): Finding[] {
  const findings: Finding[] = []
  const state = new Map<string, 'open' | 'done'>()
  const path: Migration[] = []
  const visit = (migration: Migration): void => {
    if (state.get(migration.id) === 'done') return
    if (state.get(migration.id) === 'open') {
      findings.push(cycleFinding(path.slice(path.findIndex(({ id }) => id === migration.id))))
      return
    }
    state.set(migration.id, 'open')
    path.push(migration)
    for (const earlier of before.get(migration.id) ?? []) visit(earlier)
    path.pop()
    state.set(migration.id, 'done')
  }
  for (const migration of migrations) visit(migration)
  return findings
}

/** @param circle each migration depends on the next, the last on the first */
function cycleFinding(circle: readonly Migration[]): Finding {
  const names = [...circle, circle[0]!].map(({ id }) => id).join(' → ')
  // The order within a domain is not written down anywhere, so the finding points at a line that is.
  for (const [index, { file, depends }] of circle.entries()) {
    const next = circle[(index + 1) % circle.length]!
    const declared = depends.find(({ target }) => target === next.id)
    if (declared) return errorAt(RULE, file, declared.line, `the dependencies go in a circle: ${names}`)
  }
  return errorAt(RULE, circle[0]!.file, 1, `the dependencies go in a circle: ${names}`)
}

function undeclaredUses(migrations: readonly Migration[], before: ReadonlyMap<string, Migration[]>): Finding[] {
  const origins = tableOrigins(migrations)
  return migrations.flatMap((migration) => {
    const findings: Finding[] = []
    const named = new Set<string>()
    for (const { table, role, line } of migration.tables) {
      const creators = role === 'create' ? [] : (origins.get(table) ?? [])
      if (creators.length === 0 || named.has(table)) continue
      named.add(table)
      if (creators.some((creator) => creator.migration.domain === migration.domain)) continue
      const earlier = allBefore(migration, before)
      if (creators.some((creator) => earlier.has(creator.migration.id))) continue
      const wanted = creators[0]!.migration.id
      const message = `${migration.id} needs the table '${table}' that ${wanted} creates: add '-- depends: ${wanted}'`
      findings.push(errorAt(RULE, migration.file, line, message))
    }
    return findings
  })
}

function allBefore(migration: Migration, before: ReadonlyMap<string, Migration[]>): Set<string> {
  const found = new Set<string>()
  const pending = [...(before.get(migration.id) ?? [])]
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (found.has(next.id)) continue
    found.add(next.id)
    pending.push(...(before.get(next.id) ?? []))
  }
  return found
}
