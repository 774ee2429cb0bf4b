// What a case of the benchmark is, and a row of its table.
import type { LoadGenerator } from './load/generator.ts'

/** `HTTP_LISTENER` of the runtime under test. */
export const LISTENERS = ['auto', 'uws', 'node'] as const
export type Listener = (typeof LISTENERS)[number]

/** The target of a figure. */
export interface Target {
  /** Whether the target is for `ratio` (to the baseline) or for the runtime's own `figure`. */
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
  /** Null for a figure that is only told. */
  target: Target | null
  /** Failed answers, lost connections, and anything else that makes the figure invalid; empty when there is none. */
  faults: string[]
  /** A short explanation of the figure. */
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
  /** Run only the baselines: what the machine can do. */
  baselinesOnly: boolean
  listener: Listener
  load: LoadGenerator
  /** Folder in which the server of that name writes its CPU profiles; undefined when none are wanted. */
  profileDir(server: string): string | undefined
  /** Prints a line of progress with a figure. */
  say(text: string): void
  /**
   * Shows what the case is doing now.
   * @param share of the case that is done, from 0 to 1, if it is known
   */
  step(what: string, share?: number): void
}

export interface BenchCase {
  name: string
  title: string
  run(context: CaseContext): Promise<CaseResult>
}

/** A target for the ratio to the baseline. */
export const ratioTo = (sense: Target['sense'], value: number): Target => ({ of: 'ratio', sense, value, unit: '×' })

/** A target for the runtime's own figure. */
export const figureTo = (sense: Target['sense'], value: number, unit: string): Target => ({
  of: 'figure',
  sense,
  value,
  unit,
})

/** The row of a figure without a baseline. */
export const alone = (
  row: Pick<Row, 'label' | 'unit' | 'heddle' | 'target'> & { faults?: string[]; note?: string },
): Row => ({ baseline: null, baselineName: null, ratio: null, faults: [], ...row })

/** What explains a figure, as far as there is something to say. */
export function noteOf(...parts: (string | undefined)[]): { note?: string } {
  const said = parts.filter((part) => part !== undefined)
  return said.length === 0 ? {} : { note: said.join('; ') }
}

/** Whether the row reaches its target; null when it has none, or no figure. */
export function isMet(row: Row): boolean | null {
  if (row.target === null) return null
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
