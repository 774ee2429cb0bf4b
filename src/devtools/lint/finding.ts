import path from 'node:path'

export type RuleName =
  | 'parse'
  | 'domain-isolation'
  | 'event-contract'
  | 'table-ownership'
  | 'route-collision'
  | 'migration-order'
  | 'dual-write'
  | 'module-circle'

/** One fault that the architecture lint has found. */
export interface Finding {
  rule: RuleName
  severity: 'error' | 'warning'
  /** Relative to the working directory, with forward slashes. */
  file: string
  /** Counted from 1. */
  line: number
  message: string
}

/** A finding of severity `error`. @param file absolute */
export function errorAt(rule: RuleName, file: string, line: number, message: string): Finding {
  return { rule, severity: 'error', file: displayPath(file), line, message }
}

/** A finding of severity `warning`. @param file absolute */
export function warningAt(rule: RuleName, file: string, line: number, message: string): Finding {
  return { rule, severity: 'warning', file: displayPath(file), line, message }
}

/** The path as a report shows it: relative to the working directory, with forward slashes. */
export function displayPath(file: string): string {
  return path.relative(process.cwd(), file).split(path.sep).join('/')
}

/** Orders by file, line, rule, then message, so that two reports of the same sources are identical. */
export function compareFindings(a: Finding, b: Finding): number {
  return (
    compareText(a.file, b.file) || a.line - b.line || compareText(a.rule, b.rule) || compareText(a.message, b.message)
  )
}

/** Orders by code unit, which does not depend on the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
