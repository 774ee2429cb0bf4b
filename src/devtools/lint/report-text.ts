import { styleText } from 'node:util'
import type { BaselineEntry, Comparison } from './baseline.ts'
import type { Finding, RuleName } from './finding.ts'
import type { LintReport } from './report.ts'

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
