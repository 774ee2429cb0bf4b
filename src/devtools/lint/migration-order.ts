import { displayPath, errorAt, type Finding } from './finding.ts'
import { shortestCircles } from './module-circle.ts'
import type { Migration, Project } from './project.ts'
import { tableOrigins } from './table-ownership.ts'

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

/** @param circle each migration depends on the next; the first comes again at the end */
function circleFinding(circle: readonly Migration[]): Finding {
  const message = `the dependencies go in a circle: ${circle.map(({ id }) => id).join(' → ')}`
  // The order within a domain is not written down anywhere, so the finding points at a line that is.
  for (const [index, { file, depends }] of circle.slice(0, -1).entries()) {
    const declared = depends.find(({ target }) => target === circle[index + 1]!.id)
    if (declared) return errorAt(RULE, file, declared.line, message)
  }
  return errorAt(RULE, circle[0]!.file, 1, message)
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
      const earlier = new Set(before.get(migration.id))
      // A set takes more while it is gone through.
      for (const id of earlier) for (const each of before.get(id) ?? []) earlier.add(each)
      if (creators.some((creator) => earlier.has(creator.migration.id))) continue
      const wanted = creators[0]!.migration.id
      const message = `${migration.id} needs the table '${table}' that ${wanted} creates: add '-- depends: ${wanted}'`
      findings.push(errorAt(RULE, migration.file, line, message))
    }
    return findings
  })
}
