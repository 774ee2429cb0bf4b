// The report of the lint, for its page and for assistants.
import { type LintReport, lintArchitecture, type Tools } from '#heddle'
import { domainsDirsOf } from './configuration.ts'

/** What the architecture lint finds in the sources of all domains on disk, compared with what this process has seen since its start. */
export async function lintReport({
  config,
  event_bus: bus,
  registry,
}: Pick<Tools, 'config' | 'event_bus' | 'registry'>): Promise<LintReport> {
  return lintArchitecture(domainsDirsOf(config), config.get('TOOLS_DIR', { default: 'src/tools' }), {
    since: new Date(performance.timeOrigin).toISOString(),
    topology: await bus.getTopology(),
    uncalledTools: registry.getUncalledTools(),
  })
}
