/**
 * Structured messages between the primary and a lane, for everything that is rare. Frequent data goes through the rings (frames/).
 * Both unions are discriminated by `type`. A bare number is the doorbell.
 */
import type { MessagePort } from 'node:worker_threads'
import type { DeliveryFailure, EventRecord, SubscribeOptions } from '../contracts/event-bus.ts'
import type { RouteCode, RouteMethod } from '../contracts/http.ts'
import type { LogLevel } from '../contracts/logger.ts'
import type { PluginHealth, Starter, SystemDump, ToolStatus } from '../contracts/registry.ts'
import type { JobDefinition, JobRun } from '../contracts/scheduler.ts'
import type { Origin, RecordingInit, TraceContext } from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import type { Fault, WireError } from '../core/errors/catalogue.ts'
import type { StoreAnswer, StoreChanges } from './store-changes.ts'

/**
 * Version of what the two ends of a lane exchange: these messages, the frames, the layouts in shared memory. Raised with each change:
 * a lane loads the runtime's code from disk, and the primary may be older than that code.
 */
export const LANE_PROTOCOL = 30

/** What a lane is started with: the task of its thread in the pool. */
export interface LaneInit {
  /** LANE_PROTOCOL of the primary. */
  protocol: number
  /** The lane's number, from 0: it stays the same when the thread is replaced. */
  index: number
  settings: Settings
  /** What `config.get` reads: the variables of the process, without the secrets of the runtime. */
  variables: Record<string, string>
  /** Names of those secrets, which a lane tells whoever asks for one. */
  secretNames: string[]
  port: MessagePort
  bulk: MessagePort
  /** Rings as the lane sees them. */
  inbound: SharedArrayBuffer
  outbound: SharedArrayBuffer
  heartbeat: SharedArrayBuffer
  /** Flight recorder: the last steps of the lane, which the primary reads when the thread is gone. */
  flight: SharedArrayBuffer
  /** Path of the flight recorder's copy outside of the process; null when nobody would read it. */
  flightFile: string | null
  /** Process id of the guardian; null without one. */
  guardian: number | null
  /** Plugins that are not booted, by file, each with the reason: they brought a lane down while it booted. */
  barred: Record<string, string>
  /** Files of plugins that are not booted here, because another thread is still booting them. */
  waiting: string[]
  /** Before it reports, it lives through what its plugins have begun in their boot, for this long at most. */
  aftermathMs: number
  /** Value of `HEDDLE_RUN` in what its plugins start, which no other lane has. */
  mark: string
  /** Files of its plugins get no descriptor from this number on. */
  descriptors: number
  shared: SharedMemories
  /** Null while tracing is off. */
  tracing: RecordingInit | null
  /** Null where no history is kept. */
  history: RecordingInit | null
}

/** Task of a thread that waits for its lane: which modules to load. */
export type WarmUp = Pick<Settings, 'toolsDir' | 'tools'>

/** Memory that all threads share. */
export interface SharedMemories {
  metrics: SharedArrayBuffer
  names: SharedArrayBuffer
  statuses: SharedArrayBuffer
  /** Of the event store: LOG_MEMORY_BYTES. */
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
  /** Its handler reads the body while it comes. */
  isBodyStreamed: boolean
  /** Of a body that is streamed; undefined: HTTP_BODY_LIMIT. */
  maxBytes?: number | undefined
  /** Pages of all origins may use it. */
  crossOrigin?: boolean
  /** Its requests without a body need not bring their headers along. */
  ignoresHeaders?: boolean
  /** Its requests need not bring the client's address along. */
  ignoresAddress?: boolean
  tags: string[]
  summary: string | undefined
  description?: string | undefined
  /** Its input and output schemas, as text (src/core/schemas/json-schema.ts); left out when there are none. */
  contract?: string | undefined
}

/** A folder that a plugin of the primary serves: all lanes do, for the primary never waits for a disk. */
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
  options: SubscribeOptions
}

export interface JobManifest extends Pick<JobDefinition, 'name' | 'schedule' | 'missed'> {
  plugin: string
}

/** Everything that a lane hosts. The number of a route or job is its index in these lists. */
export interface Manifest {
  plugins: Record<string, PluginHealth>
  /** Why plugins that are dead failed: the mistake, the line, how to fix it. */
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
  /** What was being handled. Left out: nothing. */
  requestId?: string
  eventId?: string
}

/** An event that a lane publishes and waits for a reply to: the argument of the call `request`. */
export interface EventRequest {
  emitter: string
  event: string
  /** JSON text. */
  payload: string
  /** Joined by U+0000. */
  payloadKeys: string
  parentId: string | null
  requestId: string | null
  trace: TraceContext
}

/** A failed delivery, for the failure listeners of a lane. Events that they publish belong to the request and the delivery of the failed event. */
export interface FailureRecord {
  failure: DeliveryFailure
  requestId: string | null
  trace: TraceContext
}

/** Calls of one handler that wait for a thread of libuv's pool, or hold one. */
export interface PoolUse extends Origin {
  calls: number
}

/** Files that one handler has opened and not closed. */
export interface Holder extends Origin {
  files: number
}

/** Records that a thread may ask the primary to forward, because a plugin in it listens. */
export type Feed = 'traces' | 'failures' | 'logs'

export type ToLane =
  /** The primary's numbers of the lane's routes, in the order of the manifest; -1: refused. Sent before the first request. */
  | { type: 'assign'; routes: number[]; mounts: SharedMount[] }
  /** Run `onReady` of these plugins one after another: in this lane, for the whole process. */
  | { type: 'ready'; plugin: string }
  | { type: 'feed'; traces?: EventRecord[]; failures?: FailureRecord[]; logs?: LogRecord[] }
  | { type: 'snapshot'; dump: SystemDump; subscribers: Record<string, string[]> }
  | { type: 'job'; run: number; job: number; of: JobRun }
  /** Write the outcomes of deliveries to the store: a commit to a file would hold up the primary. Answered with `log-written`. */
  | { type: 'log-write'; batch: number; changes: StoreChanges }
  /** Report which handlers have calls under way in the thread pool. */
  | { type: 'pool-uses' }
  | { type: 'open-files' }
  /** Stop taking work, run `onStop`, close the tools, then leave. */
  | { type: 'drain' }
  /** The lane is to end for what happened in it: leave, without `onStop`. `isStopped`: what ran there was stopped, which may have cut off anything, the leaving too: so it is told again and again. */
  | { type: 'leave'; isStopped: boolean }

/** Why a job failed, as the log has it. */
export interface JobFault extends WireError {
  /** `domains/shop/plugins/settle-day.ts:12:5` */
  line?: string
  /** How to fix it. */
  fix?: string
}

export type ToPrimary =
  /** The lane begins to load and boot this plugin; null: it has booted all of them. */
  | { type: 'booting'; file: string | null }
  | { type: 'manifest'; manifest: Manifest; bootMs: number }
  | { type: 'boot-failed'; message: string; stack: string | undefined }
  | { type: 'subscribe'; subscriberIndex: number; subscription: SubscriptionManifest }
  | { type: 'unsubscribe'; subscriberIndex: number }
  | { type: 'listen'; feed: Feed; on: boolean }
  | { type: 'tool-status'; tool: string; status: ToolStatus; message: string | null; fault: Fault | null }
  /** `registry.updateToolStatus` of a plugin: unlike a tool call, it has not set the status word in shared memory. */
  | { type: 'set-tool'; tool: string; status: ToolStatus; message: string | null }
  | { type: 'ready-done'; plugin: string }
  | { type: 'job-done'; run: number; error: JobFault | null }
  /** Its error is null when the changes are committed. */
  | { type: 'log-written'; batch: number; error: string | null; answer: StoreAnswer }
  | { type: 'pool-uses'; uses: PoolUse[] }
  | { type: 'open-files'; holders: Holder[] }
  /** Something asks for a variable that the process has and lanes have not. */
  | { type: 'unseen-variable'; name: string; message: string; plugin: string | undefined }
  /** A plugin has started a process, which leads a group and a session of its own. `start`: `startOf` it. */
  | { type: 'process-started'; pid: number; start: number; command: string; starter: Starter }
  /** It has ended, and nothing is left in its group. */
  | { type: 'process-ended'; pid: number }
  /** A plugin is about to start one and to wait for it, for the first time: that may leave others. */
  | { type: 'process-awaited' }
  | { type: 'thread-started'; id: number; starter: Starter }
  | { type: 'thread-ended'; id: number }
  /** Something in it ends the lane, and its flight recorder says what: it takes nothing more, and leaves. */
  | { type: 'dying' }
  /** No native call is pending: the thread may be terminated. */
  | { type: 'drained' }
