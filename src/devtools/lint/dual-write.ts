import { errorAt, type Finding, warningAt } from './finding.ts'
import type { Project } from './project.ts'

const RULE = 'dual-write'

/** Rows and the events about them are written in one transaction, and nothing else is done in it. */
export function dualWrite(project: Project): Finding[] {
  return project.modules.flatMap(({ file, transactionFaults }) =>
    transactionFaults.map(({ severity, line, message }) =>
      (severity === 'error' ? errorAt : warningAt)(RULE, file, line, message),
    ),
  )
}
