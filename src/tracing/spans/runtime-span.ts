import {
  type Attributes,
  type AttributeValue,
  type Context,
  type Exception,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanStatus,
  SpanStatusCode,
  type TimeInput,
  trace,
} from '@opentelemetry/api'
import { isAttributeValue, isTimeInput, sanitizeAttributes } from '@opentelemetry/core'
import type { OpenSpan, SpanAttributes } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import { ATTR } from '../encoding/attributes.ts'
import {
  type RecordAttributes,
  RUNTIME_SCOPE,
  type SpanRecord,
  type SpanRecordEvent,
  type SpanRecordLink,
} from '../encoding/span-record.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import { linkRecordOf, msOfTime } from './api-values.ts'
import { exceptionOf } from './exception.ts'
import type { ThreadScope } from './scope.ts'
import { spanContextOf } from './span-context.ts'

/** Most attributes, events and links of one span, so many of each: the defaults of OpenTelemetry's specification. The oldest events and links are dropped. */
const SPAN_PARTS_MAX = 128

const NONE: never[] = []

export interface SpanStart {
  traceContext: TraceContext
  /** In the same trace; empty: the trace begins here. */
  parent: TraceContext
  /** The scope in this thread in which the span is made; null when its parent is in another thread or process. */
  around: ThreadScope | null
  name: string
  kind: number
  /** Not modified: many spans may share one object. */
  attributes: SpanAttributes
  /** Many spans do share it: it is encoded once for all of them. */
  areShared: boolean
}

/**
 * A span of the runtime around a plugin's code: a handler, a subscriber, a job, a tool call. For a plugin it is a span of the API like any
 * other. It is not the SDK's class because each request has several of them: this one takes a quarter of the time.
 */
export class RuntimeSpan implements Span, OpenSpan, ThreadScope, SpanRecord {
  readonly traceContext: TraceContext
  readonly parent: TraceContext
  readonly isSampled = true
  readonly kind: number
  readonly startMs: number
  readonly scope = RUNTIME_SCOPE
  name: string
  endMs = 0
  attributes: RecordAttributes
  events: SpanRecordEvent[] = NONE
  links: SpanRecordLink[] = NONE
  statusCode: SpanStatusCode = SpanStatusCode.UNSET
  statusMessage = ''
  droppedAttributes = 0
  droppedEvents = 0
  droppedLinks = 0
  readonly #writer: SpanWriter
  readonly #nowMs: () => number
  readonly #around: ThreadScope | null
  /** The attributes that it has begun with, if others have the same object. */
  readonly #shared: SpanAttributes | null
  #isOwn = false
  #context: Context | undefined

  constructor(writer: SpanWriter, nowMs: () => number, start: SpanStart) {
    const { traceContext, parent, around, name, kind, attributes, areShared } = start
    this.#writer = writer
    this.#nowMs = nowMs
    this.traceContext = traceContext
    this.parent = parent
    this.#around = around
    this.name = name
    this.kind = kind
    this.attributes = attributes
    this.#shared = areShared ? attributes : null
    this.startMs = nowMs()
  }

  get isParentRemote(): boolean {
    return this.#around === null && this.parent !== NO_TRACE_CONTEXT
  }

  get context(): Context {
    this.#context ??= trace.setSpan(this.#around?.context ?? ROOT_CONTEXT, this)
    return this.#context
  }

  spanContext(): SpanContext {
    return spanContextOf(this.traceContext)
  }

  isRecording(): boolean {
    return this.endMs === 0
  }

  setAttribute(key: string, value: AttributeValue): this {
    if (this.endMs !== 0 || typeof key !== 'string' || key === '' || !isAttributeValue(value)) return this
    if (!this.#isOwn) {
      this.attributes = { ...this.attributes }
      this.#isOwn = true
    }
    if (Object.hasOwn(this.attributes, key) || Object.keys(this.attributes).length < SPAN_PARTS_MAX)
      this.attributes[key] = value
    else this.droppedAttributes++
    return this
  }

  setAttributes(attributes: Attributes): this {
    for (const [key, value] of Object.entries(attributes)) this.setAttribute(key, value as AttributeValue)
    return this
  }

  addEvent(name: string, attributesOrTime?: Attributes | TimeInput, time?: TimeInput): this {
    const isTime = isTimeInput(attributesOrTime)
    const attributes = isTime ? {} : sanitizeAttributes(attributesOrTime)
    const atMs = msOfTime(isTime ? (attributesOrTime as TimeInput) : time) ?? this.#nowMs()
    return this.#note({ name: String(name), atMs, attributes, droppedAttributes: 0 })
  }

  #note(event: SpanRecordEvent): this {
    if (this.endMs !== 0) return this
    if (this.events === NONE) this.events = []
    this.droppedEvents += addNewest(this.events, event)
    return this
  }

  recordException(exception: Exception, time?: TimeInput): void {
    this.addEvent('exception', exceptionOf(exception).attributes, time)
  }

  addLink(link: Link): this {
    const record = linkRecordOf({ ...link, attributes: sanitizeAttributes(link.attributes) })
    if (this.endMs !== 0 || record === null) return this
    if (this.links === NONE) this.links = []
    this.droppedLinks += addNewest(this.links, record)
    return this
  }

  addLinks(links: Link[]): this {
    for (const link of links) this.addLink(link)
    return this
  }

  setStatus({ code, message }: SpanStatus): this {
    // The status OK is final, as the specification says.
    if (this.endMs !== 0 || code === SpanStatusCode.UNSET || this.statusCode === SpanStatusCode.OK) return this
    this.statusCode = code
    this.statusMessage = code === SpanStatusCode.ERROR && typeof message === 'string' ? message : ''
    return this
  }

  updateName(name: string): this {
    if (this.endMs === 0) this.name = String(name)
    return this
  }

  end(time?: TimeInput): void {
    if (this.endMs !== 0) return
    this.endMs = Math.max(this.startMs, time === undefined ? this.#nowMs() : (msOfTime(time) ?? this.#nowMs()))
    const shared = this.#shared
    if (shared !== null && this.#isPlain && !this.#writer.isForConsole) this.#writer.writeShared(this, shared)
    else this.#writer.write(this)
  }

  /** Nothing was added to it. */
  get #isPlain(): boolean {
    const isAsBegun = !this.#isOwn && this.statusCode === SpanStatusCode.UNSET
    return isAsBegun && this.events === NONE && this.links === NONE
  }

  fail(thrown: unknown): void {
    if (this.endMs !== 0) return
    const { type, message, attributes, more } = exceptionOf(thrown)
    this.addEvent('exception', attributes)
    this.setAttributes({ [ATTR.ERROR_TYPE]: type, ...more })
    this.setStatus({ code: SpanStatusCode.ERROR, message })
    this.end()
  }
}

/** @returns how many were dropped for it */
function addNewest<Item>(items: Item[], item: Item): number {
  items.push(item)
  if (items.length <= SPAN_PARTS_MAX) return 0
  items.shift()
  return 1
}
