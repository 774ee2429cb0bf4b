import type { BlackBox } from '../../src/contracts/registry.ts'
import type { LogLine } from './heddle.ts'

type Guilt = Pick<NonNullable<BlackBox['guilty']>, 'plugin' | 'evidence'>

/** Whom a line of the log names for a death. The line of a lane names him beside its other fields, the one of a process in `guilty`. */
export function guiltIn({ plugin, evidence, guilty }: LogLine): Guilt | null {
  const named = (evidence === undefined ? guilty : { plugin, evidence }) as Partial<Guilt> | null | undefined
  return named?.evidence === undefined ? null : { plugin: named.plugin ?? null, evidence: named.evidence }
}
