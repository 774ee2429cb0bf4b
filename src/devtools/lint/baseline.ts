import { compareText, type Finding, type RuleName } from './finding.ts'

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
