import { setImmediate as turnOfOthers } from 'node:timers/promises'
import { domainIsolation } from './domain-isolation.ts'
import { eventContract } from './event-contract.ts'
import { eventsOf } from './event-scan.ts'
import { compareFindings, type Finding } from './finding.ts'
import { migrationOrder } from './migration-order.ts'
import { type Observed, observe, type RunningProcess } from './observed.ts'
import { type Project, readProject } from './project.ts'
import { routeCollision, staticRoutes } from './route-collision.ts'
import { tableOwnership } from './table-ownership.ts'

/** The report that `/system/lint` answers with and `npm run lint:architecture` prints. */
export interface LintReport {
  /** True when no finding is an error. */
  ok: boolean
  /** Sorted by file and line. */
  findings: Finding[]
  /** The numbers of what was checked: files of plugins and migrations, registered routes, names of events. */
  checked: { plugins: number; migrations: number; routes: number; events: number }
  /** The differences between the running process and its sources; left out when no process was given. */
  observed?: Observed
}

/**
 * Checks the sources of all domains against the rules of the architecture. Lets the thread do other work in between. Files that have
 * not changed since the last report are not read again.
 * @param domainsDirs as `DOMAINS_DIR` lists them
 * @param toolsDir the folder of the active tools
 * @param running the state of a process that runs these sources
 */
export async function lintArchitecture(
  domainsDirs: readonly string[],
  toolsDir: string,
  running?: RunningProcess,
): Promise<LintReport> {
  const project = await readProject(domainsDirs)
  const found = [...project.faults]
  const rules = [eventContract, tableOwnership, routeCollision, migrationOrder]
  for (const rule of [(each: Project) => domainIsolation(each, toolsDir), ...rules]) {
    await turnOfOthers()
    found.push(...rule(project))
  }
  await turnOfOthers()
  const findings = found
    .sort(compareFindings)
    .filter((finding, at) => at === 0 || compareFindings(found[at - 1]!, finding) !== 0)
  const routes = staticRoutes(project).length
  await turnOfOthers()
  const events = eventsOf(project).length
  await turnOfOthers()
  return {
    ok: findings.every(({ severity }) => severity !== 'error'),
    findings,
    checked: {
      plugins: project.plugins.length,
      migrations: project.migrations.length,
      routes,
      events,
    },
    ...(running ? { observed: observe(project, running) } : {}),
  }
}
