import { compareText, type Finding, type RuleName } from './finding.ts'

/** Findings of one rule in one file that read the same but for lines, accepted so many times. */
export interface BaselineEntry {
  rule: RuleName
  /** As a finding names it. */
  file: string
  /** The finding's message, without the lines of the places that it names: it stays the same while code moves. */
  message: string
  count: number
}

/** A report compared with what was accepted. */
export interface Comparison {
  /** Findings that were not accepted; warnings, which need no acceptance, among them. */
  fresh: Finding[]
  accepted: Finding[]
  /** Accepted, and no longer found; `count` is how many of them. */
  stale: BaselineEntry[]
}

/** The lines of a file that were accepted are the first ones. */
export function compareWithBaseline(findings: readonly Finding[], baseline: readonly BaselineEntry[]): Comparison {
  const left = new Map(baseline.map((entry) => [identity(entry), entry.count]))
  const comparison: Comparison = { fresh: [], accepted: [], stale: [] }
  for (const finding of findings) {
    const key = identity(entryOf(finding))
    const count = isAcceptable(finding) ? (left.get(key) ?? 0) : 0
    if (count > 0) left.set(key, count - 1)
    comparison[count > 0 ? 'accepted' : 'fresh'].push(finding)
  }
  comparison.stale = baseline.flatMap((entry) => {
    const count = left.get(identity(entry)) ?? 0
    return count > 0 ? [{ ...entry, count }] : []
  })
  return comparison
}

/** The entries that accept these findings, each as often as it occurs. */
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

/** A file that does not parse hides whatever else is in it, and a warning fails nothing: neither is accepted. */
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
