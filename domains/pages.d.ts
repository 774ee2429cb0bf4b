/** What the scripts of the pages may name of the runtime: types alone, so that its code is not checked by the looser rules of the pages. */
export type { DeadLetter, EventRecord, TopologyEntry } from '../src/contracts/event-bus.ts'
export type { LogLevel } from '../src/contracts/logger.ts'
export type { LaneInfo, Readiness, SystemDump } from '../src/contracts/registry.ts'
export type { RequestDetail, RequestSummary } from '../src/contracts/requests.ts'
