/** The only module that a plugin imports, as `heddle`, in the repository as `#heddle`. */

export type { Claims } from './contracts/auth.ts'
export type { StandardSchemaV1 } from './contracts/common.ts'
export type { Condition, Db, Queryable, Row, Sql, SqlTag, SqlValue, TransactionOptions, Tx } from './contracts/db.ts'
export type {
  Cancelled,
  DeadLetter,
  DeadLetterFilter,
  DeliveryFailure,
  DeliveryPage,
  DeliveryPageOptions,
  EventBus,
  EventMeta,
  EventRecord,
  LostReason,
  Queue,
  QueuedDelivery,
  ReplayPreview,
  TopologyEntry,
} from './contracts/event-bus.ts'
export type {
  CancelFilter,
  CancelOptions,
  EventContracts,
  EventName,
  Events,
  Payload,
  PayloadsOf,
  PublishOptions,
} from './contracts/events.ts'
export type {
  AfterHook,
  Answer,
  ErrorHook,
  Handler,
  Http,
  IdentifyOptions,
  IdentityScheme,
  Socket,
  SocketHandlers,
  SocketOptions,
  SseStream,
} from './contracts/http.ts'
export type {
  BodyPart,
  BodyParts,
  BodyStream,
  ByteStream,
  Data,
  EndpointOptions,
  Guard,
  HookAnswer,
  HttpContext,
  SavedFile,
  SaveOptions,
  ThrownAnswer,
  ThrownAnswers,
  UploadedFile,
  User,
} from './contracts/http-request.ts'
export type { LogDetails, Logger, LogLevel } from './contracts/logger.ts'
export type {
  ChildProcessInfo,
  JsonSchema,
  LaneInfo,
  MetricRecord,
  Readiness,
  Registry,
  RequestRecord,
  RequestSink,
  RouteInfo,
  RouteSchemas,
  SystemDump,
  ThrownInfo,
  ToolStatus,
} from './contracts/registry.ts'
export type {
  DeathPart,
  DeliveryPart,
  HandlerFigures,
  PayloadPart,
  RequestDetail,
  RequestFilter,
  RequestPart,
  RequestSummary,
  WorkPart,
  WorkReport,
  WorkSpan,
} from './contracts/requests.ts'
export type {
  CronOptions,
  JobInfo,
  JobOptions,
  JobRun,
  ListOptions,
  NotedRun,
  RunNowOptions,
  Scheduler,
  StartedRun,
  UpcomingRuns,
} from './contracts/scheduler.ts'
export type { Json, State } from './contracts/state.ts'
export type { HookSetup, Tool, ToolRuntime, Tools, ToolsIn } from './contracts/tool.ts'
export { DbError, type DbErrorKind, HeddleError, RetryLater, Unrecoverable } from './core/errors/catalogue.ts'
export { type PluginPlace, pluginPlace, type SourceLine, sourceAround } from './core/errors/places.ts'
export { HttpError, type HttpErrorOptions } from './core/http/http-error.ts'
export { networkOf } from './core/http/network.ts'
export { sql } from './core/sql/fragment.ts'
export type { KeysetColumn, KeysetPage } from './core/sql/keyset.ts'
export { type KeysetOptions, keysetPage } from './core/sql/keyset.ts'
export { causalForest, type TreeNode } from './runtime/events/trace-ring.ts'
export { type FunctionPlugin, Plugin, type PluginLife, plugin } from './runtime/kernel/plugin.ts'
export { type SessionOptions, Sessions } from './runtime/sessions.ts'

import type { Guard, ThrownAnswers } from './contracts/http-request.ts'
import type { RouteInfo } from './contracts/registry.ts'
import { isPackageMissing } from './core/errors/catalogue.ts'
import { messageOf } from './core/errors/description.ts'
import { HttpError } from './core/http/http-error.ts'
import type { ApiInfo, OpenApiDocument } from './devtools/apidocs/openapi.ts'
import type { LogLine, ProcessView } from './devtools/assistant/tools.ts'
import type { ScannedEvent } from './devtools/lint/event-contract.ts'
import type { LintReport, RunningProcess } from './devtools/lint/report.ts'

export type { ApiInfo, LintReport, LogLine, OpenApiDocument, ProcessView, RunningProcess, ScannedEvent }

/** A guard that says what it throws, for the API documents: `guard({ 403: 'Admins only.' }, (data, context) => …)`. */
export function guard<Added = unknown>(throws: ThrownAnswers, run: Guard<Added>): Guard<Added> {
  return Object.assign(run, { throws })
}

/**
 * Checks the sources of some domain folders against the rules of the architecture, and compares them with the running process. The sources are
 * read in another process, once per change. @throws HttpError 501 where the parser is not installed
 */
export async function lintArchitecture(
  domainsDirs: readonly string[],
  toolsDir: string,
  running?: RunningProcess,
): Promise<LintReport> {
  const { sourceFacts } = await import('./devtools/lint/source-reader.ts')
  const { reportOf } = await import('./devtools/lint/report.ts')
  return reportOf(await sourceFacts(domainsDirs, toolsDir).catch(saidOnPage), running)
}

/** Whoever asks for a page is told what it lacks. */
function saidOnPage(error: unknown): never {
  throw isPackageMissing(error) ? new HttpError(501, messageOf(error), { code: 'PACKAGE_MISSING' }) : error
}

/** Finds the events that the sources of some domain folders name: read in another process, once per change. None where the parser is not installed. */
export async function scanEvents(domainsDirs: readonly string[], toolsDir = 'src/tools'): Promise<ScannedEvent[]> {
  const { sourceFacts } = await import('./devtools/lint/source-reader.ts')
  try {
    return (await sourceFacts(domainsDirs, toolsDir)).events
  } catch (error) {
    if (isPackageMissing(error)) return []
    throw error
  }
}

/** Answers one request of the Model Context Protocol. The library for it is loaded with the first one. @throws HttpError 501 where it is not installed */
export async function answerAssistant(request: Request, view: ProcessView): Promise<Response> {
  const { answerAssistant: answer } = await import('./devtools/assistant/answer.ts')
  return answer(request, view).catch(saidOnPage)
}

/** Describes the HTTP interface of the routes as an OpenAPI 3.1 document. */
export async function openApiDocument(
  routes: readonly RouteInfo[],
  info: ApiInfo,
  applicationUrl?: string,
): Promise<OpenApiDocument> {
  const { openApiDocument: document } = await import('./devtools/apidocs/openapi.ts')
  return document(routes, info, applicationUrl)
}

/**
 * Writes the client of some routes as one TypeScript file, with the types of the events that the contracts of some domain folders declare.
 * @param chosen which domains it is for
 */
export async function clientText(
  title: string,
  routes: readonly RouteInfo[],
  domainsDirs: readonly string[],
  chosen: (domain: string) => boolean = () => true,
): Promise<string> {
  const { clientText: text } = await import('./devtools/client/write.ts')
  const { eventPayloads } = await import('./devtools/client/event-payloads.ts')
  const events = [...(await eventPayloads(domainsDirs))].filter(([, { domain }]) => chosen(domain))
  const own = routes.filter(({ plugin }) => chosen(plugin.split('.', 1)[0]!))
  return text(title, own, new Map(events))
}
