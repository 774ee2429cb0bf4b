/**
 * The interfaces between the runtime and src/tracing, which implements them. Nothing here depends on OpenTelemetry. While tracing is off
 * there is no implementation: each place that would use one holds null, and no module of the SDK is loaded.
 */
import type { EndpointOptions } from './http-request.ts'

/**
 * The context of a span as text: a W3C `traceparent` (55 characters, version 00), followed by its `tracestate`, if there is any.
 * Empty: no trace. It crosses threads and replicas; in src/tracing it becomes OpenTelemetry's `SpanContext`.
 * Source: https://www.w3.org/TR/trace-context/
 */
export type TraceContext = string

/** A position in a trace: spans that begin here become children of the span that is open here. */
export interface TraceScope {
  readonly traceContext: TraceContext
}

/** A handler of a plugin, as reports name it. */
export interface Origin {
  /** `<domain>.<ClassName>`. */
  readonly plugin: string
  /** `GET /users/:id`, a subscriber, a job, `onBoot`. */
  readonly handler: string
  /** The plugin's file, where it is the plugin's boot: its name may not be known yet. Left out elsewhere. */
  readonly bootFile?: string
}

export interface RunningTransaction {
  /** False when its function has ended: what it has left behind goes on in its context. */
  isOpen: boolean
}

/** The cause of the code that is running. */
export interface CausalContext {
  /** Id of the event that is being handled: events published now get it as their `parent_id`. Null in an HTTP handler or a job. */
  readonly eventId: string | null
  /** The events above that one, see ancestors.ts. Left out where there is none. */
  readonly ancestors?: string
  /** Id of the HTTP request with which the chain of causes began, or null. */
  readonly requestId: string | null
  /** Its position in a trace; null while tracing is off. */
  readonly trace: TraceScope | null
  /** The handler that is running: timers, sockets and promises that it makes carry it on. Null in the runtime's own code. */
  readonly origin: Origin | null
  /** The request that is being handled: its signal is aborted when nobody waits for the answer any more. Left out elsewhere. */
  readonly request?: { readonly signal: AbortSignal } | undefined
  /** The transaction whose function is running, where it keeps others of its thread from writing. Left out elsewhere. */
  readonly transaction?: RunningTransaction | undefined
}

/** A span of the runtime around a piece of a plugin's code, and the scope of what runs inside. It ends once, by `end` or `fail`. */
export interface OpenSpan extends TraceScope {
  end(): void
  /** @param thrown recorded as an exception of the span, whose status becomes ERROR */
  fail(thrown: unknown): void
  /** Of a request, before it ends. */
  answered?(answer: SentAnswer): void
}

/** The run of a job, as the history keeps it. */
export interface RecordedRun {
  readonly id: string
  /** Null for a run by its schedule. */
  readonly askedBy: string | null
  readonly plugin: string
  readonly name: string
  /** -1: the primary itself. */
  readonly lane: number
}

/** What the primary tells the history of the runs of jobs. */
export interface RunsRecorder {
  begin(run: RecordedRun): { end(error: string | null, isCutOff: boolean): void }
}

export type SpanAttributes = Record<string, string | number | boolean>

/** What a piece of a plugin's code works on. By its ids everything that one request or event has caused is found again. */
export interface Work {
  readonly kind: 'request' | 'event' | 'job' | 'socket'
  /** Of the HTTP request with which its chain of causes began. */
  readonly requestId: string | null
  /** What the history knows that request by, where it is the request's own work; of a job the id of its run. */
  readonly key?: string
  /** Of the event that is handled; null in a request or a job. */
  readonly eventId: string | null
  /** The name of that event. */
  readonly event?: string
  /** Of the delivery, from 1 on. */
  readonly attempt?: number
  /** Of the run of a job: who asked for it. */
  readonly askedBy?: string | null
  /** The request that came, and its route. Read only where payloads are kept. */
  readonly request?: ReceivedRequest
  readonly route?: ReceivedRoute
  /** Of the event, as JSON. Read only where payloads are kept. */
  readonly payload?: string
}

/** A request in the thread of its handler. */
export interface ReceivedRequest {
  /** Raw, like the query. */
  readonly path: string
  readonly hasQuery: boolean
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  /** Null where it has none, and where its handler reads it while it comes. */
  readonly body: Uint8Array | null
  /** Of its token, or its session, once it was read. */
  readonly claims?: object | undefined
  /** Of whom `http.identify` has named. */
  readonly userId?: string | undefined
}

/** Of a route, what tells which of its fields are secret. */
export interface ReceivedRoute {
  readonly template: {
    readonly text: string
    readonly hasParameters: boolean
    read(path: string, into: Record<string, unknown>): void
  }
  readonly options: Pick<EndpointOptions, 'body' | 'query' | 'params' | 'response'>
}

/** An answer whose body is no stream. */
export interface SentAnswer {
  /** `name: value` lines. */
  readonly head: string
  /** JSON, bytes, or null for none. */
  readonly body: string | Uint8Array | null
}

/** Makes the scope of a span that is open in another thread or process. */
export interface ScopeSource {
  scope(traceContext: TraceContext): TraceScope
}

/** Spans around the code of plugins, in any thread. */
export interface CodeTracing extends ScopeSource {
  /**
   * @param traceContext of the parent span; empty: the span begins a trace, if the sampler agrees
   * @param attributes of a request: one object for all requests of its route
   */
  open(traceContext: TraceContext, name: string, attributes: SpanAttributes, work: Work): OpenSpan
}

/** What a tool says about one of its calls: names, and texts with placeholders, but no values of the arguments. */
export interface CallDetails {
  /** `client`: the call goes to another system; `producer`: it sends a message. Default `internal`. */
  kind?: 'internal' | 'client' | 'producer'
  attributes?: SpanAttributes
  /** Attributes that depend on the result. */
  ofResult?: ((result: unknown) => SpanAttributes | undefined) | undefined
}

export type DescribeCall = (method: string, args: readonly unknown[]) => CallDetails | undefined

/** Spans around tool calls. */
export interface ToolTracing {
  run(
    tool: string,
    method: string,
    describe: DescribeCall | undefined,
    args: readonly unknown[],
    call: () => unknown,
  ): unknown
}

/** What the span of a request shows. A text is empty where there is no value. */
export interface RequestStart {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly userAgent: string
  readonly requestId: string
  /** Path template. */
  readonly route: string
  readonly plugin: string
}

/** The span of one HTTP request, in the primary. */
export interface RequestSpan extends TraceScope {
  /** The lane that serves the request; -1: the primary itself. */
  servedBy: number
  /** @param status 0: the client disconnected before there was an answer */
  end(status: number): void
}

export interface RequestTracing {
  /**
   * @param traceparent as the client sent it, like `tracestate`; may be empty
   * @param start describes the request; called before this returns, and only if the request is recorded
   * @returns the span; or only its trace context, for the calls that follow, when the request is not recorded, as most are not: UNNAMED_TRACE
   * where it continues none
   */
  begin(traceparent: string, tracestate: string, start: () => RequestStart): RequestSpan | TraceContext
}

/** An HTTP request as the listener has it. Of most of them a watcher reads only how long they took. */
export interface ObservedRequest {
  readonly requestId: string
  /** The same, unless the client has chosen that. */
  readonly key: string
  readonly method: string
  /** Raw, without the query. */
  readonly path: string
  /** Null where there is no such route. */
  readonly route: ObservedRoute | null
  /** When it began, by `exactMs`. */
  readonly startMs: number
  /** The lane that serves it; -1: the primary itself. */
  readonly servedBy: number
  /** The mark of the history: it has told of this request before its end. */
  isTold: boolean
}

export interface ObservedRoute {
  readonly number: number
  /** Path template. */
  readonly path: string
  readonly plugin: string
  readonly method: string
  readonly kind: 'endpoint' | 'stream' | 'socket'
  /** `application`: not one of the runtime's own pages. */
  readonly zone: string
}

/** Hears of each request. Not when it begins: most of them end like all others, and nothing is to be kept of them. */
export interface RequestWatcher {
  /** Called once. @param status 0: the client disconnected before there was an answer @param endMs by `exactMs` */
  ended(request: ObservedRequest, status: number, endMs: number): void
  /** It is still open. Called several times a second. @param nowMs by `steadyMs` */
  isOpen?(request: ObservedRequest, nowMs: number): void
}

/** What happened to an attempt at a delivery; `atMs` is in milliseconds since the epoch. */
export type DeliveryEvent =
  | { readonly name: 'retry'; readonly atMs: number; readonly attempt: number; readonly delayMs: number }
  | { readonly name: 'put_off'; readonly atMs: number; readonly delayMs: number }
  | { readonly name: 'thread_death'; readonly atMs: number; readonly deaths: number; readonly plugin: string | null }
  | { readonly name: 'dead_letter'; readonly atMs: number; readonly attempts: number }
  | { readonly name: 'handed_over' | 'taken_over' | 'tool_away' | 'cancelled'; readonly atMs: number }

/** A delivery's span as plain data: it begins in one thread and may end in another. */
export interface DeliverySpan extends TraceScope {
  /** The span that published the event. */
  readonly parent: TraceContext
  readonly startMs: number
  readonly events: DeliveryEvent[]
}

/** What a delivery's span shows about its event. */
export interface DeliveryFacts {
  readonly event: string
  readonly eventId: string
  readonly group: string
  readonly requestId: string | null
}

/** Spans of deliveries: each from the first attempt to the last, in whichever threads they run. */
export interface DeliveryTracing extends ScopeSource {
  /** Milliseconds since the epoch, the same in all threads. */
  nowMs(): number
  /** @returns null for a delivery that is not sampled: its subscriber then runs under the span that published */
  begin(parent: TraceContext): DeliverySpan | null
  note(span: DeliverySpan, event: DeliveryEvent): void
  /** @param isGivenUp the delivery has become a dead letter */
  end(span: DeliverySpan, facts: DeliveryFacts, isGivenUp: boolean): void
}

/** One moment by the wall clock and by the monotonic clock, both in milliseconds: it gives all threads of a process one time. */
export interface ClockAnchor {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** What a thread needs to record, for the history or in spans; the primary sends it. */
export interface RecordingInit {
  /** The ring in which the thread leaves its records. */
  readonly ring: SharedArrayBuffer
  readonly clock: ClockAnchor
}
