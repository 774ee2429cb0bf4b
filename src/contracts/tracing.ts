/**
 * What the runtime asks of whoever makes spans. Nothing here knows OpenTelemetry: while tracing is off nobody implements it,
 * each place that would ask holds null, and not one module of the SDK is loaded.
 */
import type { TraceContext } from '../core/causality/trace-context.ts'

/** A place in a trace: what runs here belongs under the span that is open here. */
export interface TraceScope {
  readonly traceContext: TraceContext
}

/** A span of the runtime around a piece of a plugin's code. It is a scope for what runs inside. Ended once, by `end` or `fail`. */
export interface OpenSpan extends TraceScope {
  end(): void
  /** @param thrown becomes an exception of the span, and its status an error */
  fail(thrown: unknown): void
}

export type SpanAttributes = Record<string, string | number | boolean>

/** Makes a scope of where something else left off. */
export interface ScopeSource {
  scope(traceContext: TraceContext): TraceScope
}

/** Spans around the code of plugins, in any thread. */
export interface CodeTracing extends ScopeSource {
  /** @param traceContext of the span that it belongs under; empty: it begins a trace, if the sampler agrees */
  open(traceContext: TraceContext, name: string, attributes: SpanAttributes): OpenSpan
}

/** What a tool tells of one of its calls. Never a value that was given to it: names, and texts with placeholders. */
export interface CallDetails {
  /** `client`: it asks another system; `producer`: it hands a message on. Default `internal`. */
  kind?: 'internal' | 'client' | 'producer'
  attributes?: SpanAttributes
  /** What only the result tells. */
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

/** A request as its span tells of it. Texts are empty where there is nothing to tell. */
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
  /** Which lane has it; -1: the primary itself. */
  servedBy: number
  /** @param status 0: the client was gone before there was an answer */
  end(status: number): void
}

export interface RequestTracing {
  /**
   * @param traceparent and `tracestate` as the client sent them, perhaps empty
   * @param start tells of the request when somebody wants to know; only called before this returns
   * @returns of a request that is not recorded, as most are, its place in a trace alone: it goes on with what is called
   */
  begin(traceparent: string, tracestate: string, start: () => RequestStart): RequestSpan | TraceContext
}

/** What has become of the attempts at a delivery; `atMs` is in milliseconds since the epoch. */
export type DeliveryEvent =
  | { readonly name: 'retry'; readonly atMs: number; readonly attempt: number; readonly delayMs: number }
  | { readonly name: 'thread_death'; readonly atMs: number; readonly deaths: number }
  | { readonly name: 'dead_letter'; readonly atMs: number; readonly attempts: number }
  | { readonly name: 'handed_over' | 'taken_over'; readonly atMs: number }

/** A delivery's span as plain data: it is begun in one thread and may be ended in another. */
export interface DeliverySpan extends TraceScope {
  /** Of the span that published. */
  readonly parent: TraceContext
  readonly startMs: number
  readonly events: DeliveryEvent[]
}

/** What a delivery's span tells of its event. */
export interface DeliveryFacts {
  readonly event: string
  readonly eventId: string
  readonly group: string
  readonly requestId: string | null
}

/** Spans of deliveries: from the first attempt to the last, whoever makes them. */
export interface DeliveryTracing extends ScopeSource {
  /** Milliseconds since the epoch, the same in all threads. */
  nowMs(): number
  /** @returns null for one that is not sampled: the subscriber then goes on under what published */
  begin(parent: TraceContext): DeliverySpan | null
  note(span: DeliverySpan, event: DeliveryEvent): void
  /** @param isGivenUp it is a dead letter now */
  end(span: DeliverySpan, facts: DeliveryFacts, isGivenUp: boolean): void
}

/** Ties the clocks of a process's threads to one: where its wall clock and its monotonic clock met, both in milliseconds. */
export interface ClockAnchor {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** What a thread needs to make spans; it crosses from the primary. */
export interface TracingInit {
  /** Where it leaves them. */
  readonly ring: SharedArrayBuffer
  readonly clock: ClockAnchor
}
