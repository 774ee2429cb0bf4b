/** The only module that a plugin imports, as `#heddle`. */

export type { Claims } from './contracts/auth.ts'
export type { Db, DbErrorKind, Queryable, Row, SqlValue, Tx } from './contracts/db.ts'
export type {
  DeadLetter,
  DeadLetterFilter,
  DeliveryFailure,
  EventBus,
  EventMeta,
  EventRecord,
  TopologyEntry,
} from './contracts/event-bus.ts'
export type { EventContracts, EventName, Events, PayloadsOf } from './contracts/event-contracts.ts'
export type { Handler, Http, SseStream } from './contracts/http.ts'
export type { AfterHook, Answer, ErrorHook, Guard, HookAnswer, HookSetup, ToolsIn } from './contracts/http-hooks.ts'
export type {
  Data,
  EndpointOptions,
  HttpContext,
  ThrownAnswer,
  ThrownAnswers,
  UploadedFile,
} from './contracts/http-request.ts'
export type { Logger, LogLevel } from './contracts/logger.ts'
export type { Payload } from './contracts/payload.ts'
export type { LaneInfo, MetricRecord, Readiness, Registry, SystemDump, ToolStatus } from './contracts/registry.ts'
export type { JsonSchema, RouteInfo, RouteSchemas, ThrownInfo } from './contracts/route-info.ts'
export type { JobInfo, JobOptions, JobRun, Scheduler } from './contracts/scheduler.ts'
export type { SessionOptions } from './contracts/session.ts'
export type { Condition, Sql, SqlTag } from './contracts/sql.ts'
export type { StandardSchemaV1 } from './contracts/standard-schema.ts'
export type { Json, State } from './contracts/state.ts'
export type { Tool, ToolRuntime } from './contracts/tool.ts'
export type { Tools } from './contracts/tools.ts'
export type { Socket, SocketHandlers, SocketOptions } from './contracts/web-socket.ts'
export { causalForest, type TreeNode } from './core/causality/tree.ts'
export { HeddleError } from './core/errors/catalogue.ts'
export { DbError } from './core/errors/db-error.ts'
export { HttpError, type HttpErrorOptions } from './core/errors/http-error.ts'
export { Unrecoverable } from './core/errors/unrecoverable.ts'
export { sql } from './core/sql/fragment.ts'
export { type KeysetColumn, type KeysetOptions, type KeysetPage, keysetPage } from './core/sql/keyset.ts'
export { guard } from './runtime/endpoint/guard.ts'
export { Plugin } from './runtime/kernel/plugin.ts'
export { Sessions } from './runtime/sessions/sessions.ts'

import type { RouteInfo } from './contracts/route-info.ts'
import type { AsyncApiDocument, EventParties } from './devtools/apidocs/asyncapi.ts'
import type { ApiInfo, OpenApiDocument } from './devtools/apidocs/openapi.ts'
import type { ScannedEvent } from './devtools/lint/event-scan.ts'
import type { RunningProcess } from './devtools/lint/observed.ts'
import type { LintReport } from './devtools/lint/report.ts'

export type { ApiInfo, AsyncApiDocument, EventParties, LintReport, OpenApiDocument, RunningProcess, ScannedEvent }

/**
 * Checks the sources of some domain folders against the rules of the architecture, and compares them with the running process. The sources are
 * read in another process, once per change.
 */
export async function lintArchitecture(
  domainsDirs: readonly string[],
  toolsDir: string,
  running?: RunningProcess,
): Promise<LintReport> {
  const { sourceFacts } = await import('./devtools/lint/source-reader.ts')
  const { reportOf } = await import('./devtools/lint/report.ts')
  return reportOf(await sourceFacts(domainsDirs, toolsDir), running)
}

/** Finds the events that the sources of some domain folders name: read in another process, once per change. */
export async function scanEvents(domainsDirs: readonly string[], toolsDir = 'src/tools'): Promise<ScannedEvent[]> {
  const { sourceFacts } = await import('./devtools/lint/source-reader.ts')
  return (await sourceFacts(domainsDirs, toolsDir)).events
}

/** Describes the HTTP interface of the routes as an OpenAPI 3.1 document. */
export async function openApiDocument(routes: readonly RouteInfo[], info: ApiInfo): Promise<OpenApiDocument> {
  const { openApiDocument: document } = await import('./devtools/apidocs/openapi.ts')
  return document(routes, info)
}

/** Describes the events that plugins exchange as an AsyncAPI 3.0 document, with the payloads that the contracts of some domain folders declare. */
export async function asyncApiDocument(
  parties: Readonly<Record<string, EventParties>>,
  domainsDirs: readonly string[],
  info: ApiInfo,
): Promise<AsyncApiDocument> {
  const { asyncApiDocument: document } = await import('./devtools/apidocs/asyncapi.ts')
  const { eventPayloads } = await import('./devtools/apidocs/event-payloads.ts')
  return document(parties, await eventPayloads(domainsDirs), info)
}
