// What the lint answers: the report, its differences from the running process and from what was accepted, and the report as text.
import { styleText } from 'node:util'
import type { TopologyEntry } from '../../contracts/event-bus.ts'
import { isBuiltIn, type ScannedEvent } from './event-contract.ts'
import { compareText, type Finding, type RuleName } from './finding.ts'

/** The report that `/system/lint` answers with and `npm run lint:architecture` prints. */
export interface LintReport extends Pick<SourceFacts, 'findings' | 'checked'> {
  /** True when no finding is an error. */
  ok: boolean
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

/** An accepted finding: rule, file, message, and how often it may occur. */
export interface BaselineEntry {
  rule: RuleName
  /** The file as findings name it. */
  file: string
  /** The finding's message without line numbers, so that it stays the same when code moves. */
  message: string
  count: number
}

/** A report compared with what was accepted. */
export interface Comparison {
  /** Findings that were not accepted, among them all warnings, which need no acceptance. */
  fresh: Finding[]
  accepted: Finding[]
  /** Accepted findings that are no longer found; `count` says how many. */
  stale: BaselineEntry[]
  /** The baseline without those. */
  shrunk: BaselineEntry[]
}

/** When a finding occurs more often than it was accepted, its first occurrences count as the accepted ones. */
export function compareWithBaseline(findings: readonly Finding[], baseline: readonly BaselineEntry[]): Comparison {
  const left = new Map(baseline.map((entry) => [identity(entry), entry.count]))
  const comparison: Comparison = { fresh: [], accepted: [], stale: [], shrunk: [] }
  for (const finding of findings) {
    const key = identity(entryOf(finding))
    const count = isAcceptable(finding) ? (left.get(key) ?? 0) : 0
    if (count > 0) left.set(key, count - 1)
    comparison[count > 0 ? 'accepted' : 'fresh'].push(finding)
  }
  for (const entry of baseline) {
    const count = left.get(identity(entry))!
    if (count > 0) comparison.stale.push({ ...entry, count })
    if (count < entry.count) comparison.shrunk.push({ ...entry, count: entry.count - count })
  }
  return comparison
}

/** The entries that accept exactly these findings. */
export function baselineOf(findings: readonly Finding[]): BaselineEntry[] {
  const entries = new Map<string, BaselineEntry>()
  for (const finding of findings.filter(isAcceptable)) {
    const entry = entryOf(finding)
    const known = entries.get(identity(entry))
    if (known) known.count++
    else entries.set(identity(entry), entry)
  }
  return [...entries.values()].sort(
    (a, b) => compareText(a.file, b.file) || compareText(a.rule, b.rule) || compareText(a.message, b.message),
  )
}

/** False for a file that does not parse, since it may hide other findings, and for warnings, which fail nothing. */
export function isAcceptable({ rule, severity }: Finding): boolean {
  return severity === 'error' && rule !== 'parse'
}

/** @throws Error that says what is wrong with the text of a baseline file */
export function parseBaseline(text: string): BaselineEntry[] {
  const { accepted } = (JSON.parse(text) ?? {}) as { accepted?: unknown }
  if (!Array.isArray(accepted)) throw new Error("it has no list 'accepted'")
  return accepted.map((entry: Partial<BaselineEntry> | null, at) => {
    const { rule, file, message, count } = entry ?? {}
    const isWhole = [rule, file, message].every((part) => typeof part === 'string')
    if (!isWhole || !Number.isInteger(count) || count! < 1) {
      throw new Error(`entry ${at + 1} of 'accepted' is not of the form { rule, file, message, count }`)
    }
    return { rule: rule!, file: file!, message: message!, count: count! }
  })
}

export function baselineText(accepted: readonly BaselineEntry[]): string {
  return `${JSON.stringify({ accepted }, null, 2)}\n`
}

function entryOf({ rule, file, message }: Finding): BaselineEntry {
  return { rule, file, message: message.replace(/(\.\w+):\d+/g, '$1'), count: 1 }
}

function identity({ rule, file, message }: BaselineEntry): string {
  return `${rule}\0${file}\0${message}`
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
