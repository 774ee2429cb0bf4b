/**
 * Structured messages between the primary and a lane, for everything that is rare. Frequent data goes through the rings (frames/).
 * Both unions are discriminated by `type`. A bare number is the doorbell.
 */
import type { MessagePort } from 'node:worker_threads'
import type { DeliveryFailure, EventRecord, LostReason, SubscriberOptions } from '../contracts/event-bus.ts'
import type { RouteCode, RouteMethod } from '../contracts/http.ts'
import type { LogLevel } from '../contracts/logger.ts'
import type { PluginHealth, Starter, SystemDump, ToolStatus } from '../contracts/registry.ts'
import type { JobDefinition, JobTime } from '../contracts/scheduler.ts'
import type { Origin, RecordingInit, TraceContext } from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import type { Fault, WireError } from '../core/errors/catalogue.ts'
import type { StoreAnswer, StoreChanges } from './store-changes.ts'

/**
 * Version of what the two ends of a lane exchange: these messages, the frames, the layouts in shared memory. Raised with each change:
 * a lane loads the runtime's code from disk, and the primary may be older than that code.
 */
export const LANE_PROTOCOL = 33

/** What a lane is started with: the task of its thread in the pool. */
export interface LaneInit {
  /** LANE_PROTOCOL of the primary. */
  protocol: number
  /** The lane's number, from 0: it stays the same when the thread is replaced. */
  index: number
  settings: Settings
  /** Variables for `config.get`: those of the process without the secrets of the runtime. */
  variables: Record<string, string>
  /** Names of those secrets, for the error of a plugin that reads one. */
  secretNames: string[]
  port: MessagePort
  bulk: MessagePort
  /** Rings as the lane sees them. */
  inbound: SharedArrayBuffer
  outbound: SharedArrayBuffer
  heartbeat: SharedArrayBuffer
  /** Flight recorder: the last steps of the lane, read by the primary after the thread has ended. */
  flight: SharedArrayBuffer
  /** Path of the flight recorder's copy outside of the process; null without a guardian, which reads it. */
  flightFile: string | null
  /** Process id of the guardian; null without one. */
  guardian: number | null
  /** Plugins that crashed a lane in their boot, by file, with the reason: the lane does not boot them. */
  barred: Record<string, string>
  /** Files of plugins that another thread is still booting: the lane does not boot them. */
  waiting: string[]
  /** Maximum time between boot and report in which work that plugins began in their boot may fail, milliseconds. */
  aftermathMs: number
  /** Value of `HEDDLE_RUN` in the processes that its plugins start, unique to the lane. */
  mark: string
  /** File descriptors of its plugins stay below this number. */
  descriptors: number
  shared: SharedMemories
  /** Null while tracing is off. */
  tracing: RecordingInit | null
  /** Null where no history is kept. */
  history: RecordingInit | null
  /** By how much a test has moved the time; null outside of a test. */
  movedTime: SharedArrayBuffer | null
}

/** Task of a spare thread: the modules to load. */
export type WarmUp = Pick<Settings, 'toolsDir' | 'tools'>

/** Memory that all threads share. */
export interface SharedMemories {
  metrics: SharedArrayBuffer
  names: SharedArrayBuffer
  statuses: SharedArrayBuffer
  /** Of the event store: STORE_MEMORY_BYTES. */
  log: SharedArrayBuffer
  /** CLAIM_MEMORY_BYTES. */
  claims: SharedArrayBuffer
  /** Memory that a tool asked for in the primary, by `<tool>/<name>`. */
  tools: Record<string, SharedArrayBuffer>
}

export interface RouteManifest {
  plugin: string
  method: RouteMethod
  path: string
  kind: RouteCode['kind']
  timeoutMs: number | undefined
  /** Its handler reads the body while it arrives. */
  isBodyStreamed: boolean
  /** Maximum length of a streamed body; undefined: HTTP_BODY_LIMIT. */
  maxBytes?: number | undefined
  /** Pages of any origin may use it. */
  crossOrigin?: boolean
  /** Nothing in the lane reads the headers of a request without a body. */
  ignoresHeaders?: boolean
  /** Nothing in the lane reads the client's address. */
  ignoresAddress?: boolean
  tags: string[]
  summary: string | undefined
  description?: string | undefined
  /** Its input and output schemas, as text (src/core/schemas/json-schema.ts); left out when there are none. */
  contract?: string | undefined
}

/** A folder of a plugin in the primary. The lanes serve it: the primary never waits for a disk. */
export interface SharedMount {
  plugin: string
  prefix: string
  directory: string
  /** Route numbers of its endpoints, in the order of `mountEndpoints`. */
  numbers: number[]
}

export interface SubscriptionManifest {
  plugin: string
  event: string
  /** `<plugin>.<handler>`: the name of the subscriber. */
  identity: string
  options: SubscriberOptions
}

export interface JobManifest extends Pick<JobDefinition, 'name' | 'schedule' | 'missed'> {
  plugin: string
}

/** Everything that a lane hosts. A route or job is numbered by its index in these lists. */
export interface Manifest {
  plugins: Record<string, PluginHealth>
  /** Why dead plugins failed: the mistake, the line, how to fix it. */
  faults: Record<string, string>
  /** Absolute path of each plugin's file. */
  files: Record<string, string>
  routes: RouteManifest[]
  subscriptions: (SubscriptionManifest & { subscriberIndex: number })[]
  jobs: JobManifest[]
}

export interface LogRecord {
  level: LogLevel
  message: string
  timestampMs: number
  identity: string
  fields?: Record<string, unknown>
  /** The request or event that was being handled. */
  requestId?: string
  eventId?: string
}

/** An event whose publisher waits for a reply: the argument of the call `request`. */
export interface EventRequest {
  emitter: string
  event: string
  /** JSON text. */
  payload: string
  /** Joined by U+0000. */
  payloadKeys: string
  parentId: string | null
  ancestors: string
  requestId: string | null
  trace: TraceContext
}

/** A failed delivery, for the failure listeners of a lane. Events that they publish are caused by the failed event's request and delivery. */
export interface FailureRecord {
  failure: DeliveryFailure
  /** Of what is published because of it. */
  ancestors: string
  requestId: string | null
  trace: TraceContext
}

/** Calls of one handler in libuv's thread pool, running or queued. */
export interface PoolUse extends Origin {
  calls: number
}

/** Open files of one handler. */
export interface Holder extends Origin {
  files: number
}

/** Records that the primary forwards to threads in which a plugin listens. */
export type Feed = 'traces' | 'failures' | 'logs'

export type ToLane =
  /** The primary's numbers of the lane's routes, in the order of the manifest; -1: refused. Sent before the first request. */
  | { type: 'assign'; routes: number[]; mounts: SharedMount[] }
  /** Run `onReady` of the plugin: in this lane, for the whole process. */
  | { type: 'ready'; plugin: string }
  | { type: 'feed'; traces?: EventRecord[]; failures?: FailureRecord[]; logs?: LogRecord[] }
  | { type: 'snapshot'; dump: SystemDump; subscribers: Record<string, string[]> }
  | { type: 'job'; run: number; job: number; of: JobTime }
  /** The handler of a run should end. */
  | { type: 'job-lost'; run: number; reason: LostReason }
  /** Write the outcomes of deliveries to the store: a commit to a file would hold up the primary. Answered with `log-written`. */
  | { type: 'store-write'; batch: number; changes: StoreChanges }
  /** The handler of a delivery should end. */
  | { type: 'delivery-lost'; delivery: number; reason: LostReason }
  /** Report which handlers have calls under way in the thread pool. */
  | { type: 'pool-uses' }
  | { type: 'open-files' }
  /** A test has moved the time. */
  | { type: 'time-moved' }
  /** Stop taking work, run `onStop`, close the tools, then leave. */
  | { type: 'drain' }
  /** End without `onStop`, because of a crash or a stall. `isStopped`: the running handler was terminated. That may have interrupted the leaving itself, so the message is repeated. */
  | { type: 'leave'; isStopped: boolean }

/** Why a job failed, for the log. */
export interface JobFault extends WireError {
  /** `domains/shop/plugins/settle-day.ts:12:5` */
  line?: string
  /** How to fix it. */
  fix?: string
  /** It was told to end before: the run is not done. */
  isLost?: boolean
}

export type ToPrimary =
  /** The lane begins to load and boot this plugin; null: all are booted. */
  | { type: 'booting'; file: string | null }
  | { type: 'manifest'; manifest: Manifest; bootMs: number }
  | { type: 'boot-failed'; message: string; stack: string | undefined }
  | { type: 'subscribe'; subscriberIndex: number; subscription: SubscriptionManifest }
  | { type: 'unsubscribe'; subscriberIndex: number }
  | { type: 'listen'; feed: Feed; on: boolean }
  | { type: 'tool-status'; tool: string; status: ToolStatus; message: string | null; fault: Fault | null }
  /** `registry.updateToolStatus` of a plugin: unlike a tool call, it has not set the status word in shared memory. */
  | { type: 'set-tool'; tool: string; status: ToolStatus; message: string | null }
  /** A committed transaction has taken events back. */
  | { type: 'cancelled' }
  /** A stored event that waits has got another due time, milliseconds since the epoch. */
  | { type: 'event-moved'; event: string; dueMs: number }
  /** Reports of an event are stored. */
  | { type: 'reported'; id: string }
  /** The handler of a delivery still works. */
  | { type: 'heartbeat'; delivery: number }
  | { type: 'ready-done'; plugin: string }
  | { type: 'job-done'; run: number; error: JobFault | null }
  /** `error` is null when the changes are committed. */
  | { type: 'store-written'; batch: number; error: string | null; answer: StoreAnswer }
  | { type: 'pool-uses'; uses: PoolUse[] }
  | { type: 'open-files'; holders: Holder[] }
  /** A plugin reads a variable that the process has and lanes do not. */
  | { type: 'unseen-variable'; name: string; message: string; plugin: string | undefined }
  /** A plugin has started a process, which leads its own group and session. `start`: its `startOf`. */
  | { type: 'process-started'; pid: number; start: number; command: string; starter: Starter }
  /** The process has ended, and its group is empty. */
  | { type: 'process-ended'; pid: number }
  /** A plugin starts a process synchronously for the first time: that process may leave others behind. */
  | { type: 'process-awaited' }
  | { type: 'thread-started'; id: number; starter: Starter }
  | { type: 'thread-ended'; id: number }
  /** The lane leaves, and has not begun these deliveries. */
  | { type: 'unbegun'; deliveries: number[] }
  /** A crash ends the lane, and its flight recorder has the cause: it takes no more work, and leaves. */
  | { type: 'dying' }
  /** No native call is pending: the thread may be terminated. */
  | { type: 'drained' }
