// What a schema is, what it finds wrong, and what an object of JSON is.
import type { StandardIssue, StandardSchemaV1 } from '../../contracts/common.ts'

/** Most faults of one value that are reported: a body of 1 MiB may have half a million. */
const FAULTS_MAX = 100

/** A place where a value does not fit its schema. */
interface SchemaFault {
  /** Keys and indexes joined by dots, for example `items.0.price`; empty for the value itself. */
  path: string
  message: string
}

export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  const standard = (value as { '~standard'?: { validate?: unknown } | null })['~standard']
  return typeof standard?.validate === 'function'
}

/** The first `FAULTS_MAX` issues as faults. When there are more, one further fault gives their number. */
export function faultsOf(issues: readonly StandardIssue[]): SchemaFault[] {
  const faults = issues.slice(0, FAULTS_MAX).map((issue) => ({ path: pathOf(issue), message: issue.message }))
  const left = issues.length - faults.length
  if (left > 0) faults.push({ path: '', message: `and ${left} more` })
  return faults
}

/** The first three issues as the text of a message, with the number of the others. */
export function listed(issues: readonly StandardIssue[]): string {
  const shown = issues.slice(0, 3).map((issue) => (issue.path?.length ? `${pathOf(issue)}: ` : '') + issue.message)
  if (issues.length > shown.length) shown.push(`and ${issues.length - shown.length} more`)
  return shown.join('; ')
}

function pathOf({ path = [] }: StandardIssue): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}

/** True for an object as JSON has it: not null, not an array. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
