// What the lint answers: the report, its differences from the running process, and the report as text.
import { styleText } from 'node:util'
import type { TopologyEntry } from '../../contracts/event-bus.ts'
import type { BaselineEntry, Comparison } from './baseline.ts'
import { isBuiltIn, type ScannedEvent } from './events.ts'
import { compareText, type Finding, type RuleName } from './finding.ts'

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

/** @param running the state of a process that runs these sources */
export function reportOf(facts: SourceFacts, running?: RunningProcess): LintReport {
  const { findings, checked } = facts
  return {
    ok: findings.every(({ severity }) => severity !== 'error'),
    findings,
    checked,
    ...(running ? { observed: observe(facts, running) } : {}),
  }
}

/** What the sources of all domains say. It is plain data: it comes from another process. */
export interface SourceFacts {
  /** Sorted by file and line. */
  findings: Finding[]
  /** The numbers of what was checked: files of plugins and migrations, registered routes, names of events. */
  checked: { plugins: number; migrations: number; routes: number; events: number }
  /** Sorted by name. */
  events: ScannedEvent[]
  /** The place of each event's contract, `file:line`, by event. */
  contracts: Record<string, string>
}

/** The state of a running process, for comparison with its sources. */
export interface RunningProcess {
  /** ISO 8601 UTC: since when the process has counted. */
  since: string
  /** The result of `event_bus.getTopology()`. */
  topology: Readonly<Record<string, TopologyEntry>>
  /** The result of `registry.getUncalledTools()`. */
  uncalledTools: Readonly<Record<string, readonly string[]>>
}

/**
 * The differences between a running process and its sources. These are not findings: code that never ran may simply not have been needed yet.
 * The runtime's own events are left out.
 */
export interface Observed {
  /** ISO 8601 UTC: the process's start. */
  since: string
  /** Events that fired although no contract and no `publish` in the sources names them. */
  undeclared_events: Array<{ event: string; emitters: string[]; subscribers: string[]; fire_count: number }>
  /** Events with a contract or a `publish` in the sources that have not fired. `contract` is `file:line`, `emitters` are the plugins that would publish them. */
  unseen_events: Array<{ event: string; contract: string | null; emitters: string[] }>
  /** Tools that a plugin takes and has not called in any thread. */
  unused_tools: Array<{ plugin: string; tools: string[] }>
}

/** @internal */
export function observe(
  { contracts, events }: SourceFacts,
  { since, topology, uncalledTools }: RunningProcess,
): Observed {
  const emitters = new Map<string, string[]>()
  for (const scanned of events) if (scanned.emitters.length > 0) emitters.set(scanned.event, scanned.emitters)
  const declared = new Set([...Object.keys(contracts), ...emitters.keys()])
  const fired = Object.entries(topology).filter(([, { fire_count }]) => fire_count > 0)
  const seen = new Set(fired.map(([event]) => event))
  return {
    since,
    undeclared_events: fired
      .filter(([event]) => !declared.has(event) && !isBuiltIn(event))
      .map(([event, { emitters, subscribers, fire_count }]) => ({ event, emitters, subscribers, fire_count }))
      .sort((a, b) => compareText(a.event, b.event)),
    unseen_events: [...declared]
      .filter((event) => !seen.has(event) && !isBuiltIn(event))
      .sort(compareText)
      .map((event) => ({
        event,
        contract: Object.hasOwn(contracts, event) ? contracts[event]! : null,
        emitters: emitters.get(event) ?? [],
      })),
    unused_tools: Object.entries(uncalledTools)
      .map(([plugin, tools]) => ({ plugin, tools: [...tools].sort(compareText) }))
      .sort((a, b) => compareText(a.plugin, b.plugin)),
  }
}

const FIXES: Readonly<Record<RuleName, string>> = {
  parse: 'correct it: nothing else in there was looked at',
  'domain-isolation': 'publish an event or send a request by event_bus; what two domains share is a package',
  'event-contract': "make domains/<domain>/events.ts and the call agree: the contract's name, keys and types",
  'table-ownership': "ask the table's domain by an event or a request, or keep what you need in a table of your own",
  'route-collision': 'give one of the two another path or method',
  'dual-write':
    'in a transaction call only tx.execute, tx.query, tx.queryOne and tx.publish; do the rest before it or after it',
  'module-circle': 'move what both need into a file of its own, or import only the type: import type',
  'migration-order':
    "number migrations NNN_name.sql, and name in the header what each builds upon: '-- depends: <domain>/<NNN_name>'",
}

/** The report as text, grouped by file, with a hint for each finding how to fix it. @param hasColours true for a terminal */
export function reportText(
  checked: LintReport['checked'],
  { fresh, accepted, stale }: Comparison,
  baselineFile: string,
  hasColours: boolean,
): string {
  const paint = (style: Parameters<typeof styleText>[0], text: string) => (hasColours ? styleText(style, text) : text)
  const lines: string[] = []
  for (const [file, findings] of byFile(fresh)) {
    lines.push(paint('underline', file))
    for (const finding of findings) {
      const { line, severity, rule, message } = finding
      const kind = paint(severity === 'error' ? 'red' : 'yellow', severity)
      lines.push(`  ${line}  ${kind}  ${rule}  ${message}`, paint('dim', `    fix: ${fixOf(finding)}`))
    }
    lines.push('')
  }
  if (stale.length > 0) {
    lines.push(paint('underline', baselineFile))
    for (const entry of stale) {
      lines.push(`  ${paint('red', 'no longer found')}  ${describe(entry)}`)
    }
    lines.push(paint('dim', '    fix: npm run lint:architecture -- --update-baseline'), '')
  }
  const errors = fresh.filter(({ severity }) => severity === 'error').length
  const counts = Object.entries(checked).map(([what, count]) => `${what} ${count}`)
  const more = [
    ...(accepted.length > 0 ? [`accepted ${accepted.length}`] : []),
    ...(stale.length > 0 ? [`no longer found ${stale.length}`] : []),
  ].map((part) => `, ${part}`)
  const summary = `errors ${errors}, warnings ${fresh.length - errors}${more.join('')}; checked: ${counts.join(', ')}`
  lines.push(paint(errors + stale.length > 0 ? 'red' : 'green', summary))
  return lines.join('\n')
}

function fixOf({ rule, severity, message }: Finding): string {
  if (severity === 'error') return FIXES[rule]
  if (rule === 'dual-write') return 'db.transaction(async (tx) => { await tx.execute(…); await tx.publish(…) })'
  if (rule !== 'event-contract') return FIXES[rule]
  return message.startsWith('nobody')
    ? 'correct the name, publish the event, or take the subscription out'
    : 'events.ts is loaded by itself: let it export the contracts by default, without the rest of the domain'
}

/** An accepted finding in one line. */
export function describe({ rule, file, message, count }: BaselineEntry): string {
  return `${file}  ${rule}  ${message}${count > 1 ? ` (${count} times)` : ''}`
}

function byFile(findings: readonly Finding[]): Map<string, Finding[]> {
  const files = new Map<string, Finding[]>()
  for (const finding of findings) files.set(finding.file, [...(files.get(finding.file) ?? []), finding])
  return files
}
