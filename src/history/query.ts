import type { RequestFilter, WorkSpan } from '../contracts/requests.ts'

/** A question to the history's thread. */
export type HistoryQuery =
  | { kind: 'list'; filter: RequestFilter }
  /** By the id of a request, a job's run or an event. */
  | { kind: 'one'; id: string }
  | { kind: 'figures'; span: WorkSpan }
