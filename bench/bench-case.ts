import type { LoadGenerator } from './load/generator.ts'

/** What the project promises of a figure. */
export interface Target {
  /** Whether `ratio` (to the baseline) or the runtime's own `figure` is held to it. */
  of: 'ratio' | 'figure'
  sense: 'at most' | 'at least' | 'under'
  value: number
  /** Unit of a figure's target, `×` for a ratio. */
  unit: string
}

/** One line of the table. Figures are null where the case has none, or where the side was not run. */
export interface Row {
  label: string
  /** Unit of both figures. */
  unit: string
  heddle: number | null
  baseline: number | null
  /** What the baseline is, for example `Fastify`. */
  baselineName: string | null
  ratio: number | null
  target: Target
  /** Answers that were no success, lost connections, and whatever else makes the figure void; empty when all is well. */
  faults: string[]
  /** A word that explains the figure. */
  note?: string
}

export interface CaseResult {
  rows: Row[]
  /** Everything measured, round by round, for the file of results. */
  details: unknown
}

export interface CaseContext {
  /** Length of one measured window. */
  measureMs: number
  /** How often all sides of a comparison are measured, in turn. */
  rounds: number
  /** Only the other side of the comparisons: what the machine gives. */
  baselinesOnly: boolean
  load: LoadGenerator
  /** Folder in which a server of that name leaves its CPU profiles; undefined when none are wanted. */
  profileDir(server: string): string | undefined
  /** A line of progress: a figure that is known. */
  say(text: string): void
  /**
   * What the case is at now.
   * @param share of the case that is done, from 0 to 1, where that can be told
   */
  step(what: string, share?: number): void
}

export interface BenchCase {
  name: string
  title: string
  run(context: CaseContext): Promise<CaseResult>
}

/** Whether the row keeps its promise; null when there is nothing to hold to it. */
export function isMet(row: Row): boolean | null {
  const value = row.target.of === 'ratio' ? row.ratio : row.heddle
  if (value === null) return null
  if (row.faults.length > 0) return false
  switch (row.target.sense) {
    case 'at most':
      return value <= row.target.value
    case 'at least':
      return value >= row.target.value
    case 'under':
      return value < row.target.value
  }
}
