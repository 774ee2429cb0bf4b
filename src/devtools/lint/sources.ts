import { setImmediate as turnOfOthers } from 'node:timers/promises'
import { contractPlace, eventContract, eventsOf } from './event-contract.ts'
import { compareFindings, displayPath } from './finding.ts'
import { domainIsolation, moduleCircle } from './import-rules.ts'
import { type Project, readProject, type Unreadable } from './project.ts'
import type { SourceFacts } from './report.ts'
import { routeCollision, staticRoutes } from './route-collision.ts'
import { migrationOrder, tableOwnership } from './table-rules.ts'

/**
 * Reads the sources of all domains and checks them against the rules of the architecture. Lets the thread do other work in between.
 * @param domainsDirs as `DOMAINS_DIR` lists them
 * @param toolsDir the folder of the active tools
 * @param unreadable files that are left out, absolute, each with the reason: they have a finding instead
 */
export async function readSources(
  domainsDirs: readonly string[],
  toolsDir: string,
  unreadable: Unreadable = {},
): Promise<SourceFacts> {
  const project = await readProject(domainsDirs, unreadable)
  const found = [...project.faults, ...project.modules.flatMap(({ transactionFaults }) => transactionFaults)]
  const rules = [eventContract, tableOwnership, routeCollision, migrationOrder, moduleCircle]
  for (const rule of [(each: Project) => domainIsolation(each, toolsDir), ...rules]) {
    await turnOfOthers()
    found.push(...rule(project))
  }
  const findings = found
    .sort(compareFindings)
    .filter((finding, at) => at === 0 || compareFindings(found[at - 1]!, finding) !== 0)
  const events = eventsOf(project)
  const contracts: Record<string, string> = {}
  for (const event of project.contracts.byEvent.keys()) {
    const place = contractPlace(project, event)
    if (place) contracts[event] = `${displayPath(place.file)}:${place.line}`
  }
  const checked = {
    plugins: project.plugins.length,
    migrations: project.migrations.length,
    routes: staticRoutes(project).length,
    events: events.length,
  }
  return { findings, checked, events, contracts }
}
