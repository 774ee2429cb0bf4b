import type { Attributes } from '@opentelemetry/api'
import { REQUEST, RESOURCE, RESOURCE_SPANS, SCOPE_SPANS, writeAttributes, writeScope } from '../encoding/otlp.ts'
import { ProtoWriter } from '../encoding/proto-writer.ts'
import { encodeShort } from '../encoding/short-span.ts'
import { RUNTIME_SCOPE, type SpanRecordScope } from '../encoding/span-record.ts'
import type { QueuedSpan } from './span-queue.ts'
import type { SpanSource } from './span-source.ts'

export type Batch = readonly QueuedSpan<SpanSource>[]

const request = new ProtoWriter()

/** The encoded Resource of a thread. */
export function encodeResource(attributes: Attributes): Uint8Array {
  const to = new ProtoWriter()
  writeAttributes(to, RESOURCE.attributes, attributes)
  return to.copy()
}

export const RUNTIME_SCOPE_BYTES = encodeScope(RUNTIME_SCOPE)

function encodeScope(scope: SpanRecordScope): Uint8Array {
  const to = new ProtoWriter()
  writeScope(to, scope)
  return to.copy()
}

/**
 * Puts spans that are already encoded into one ExportTraceServiceRequest, grouped by thread and scope.
 * @returns bytes that are valid until the next call: new memory of megabytes a second would keep the garbage collector busy
 */
export function exportRequest(batch: Batch): Uint8Array {
  const to = request
  to.clear()
  for (const [{ resourceFields }, spans] of groupBy(batch, ({ source }) => source)) {
    const resourceSpans = to.begin(REQUEST.resourceSpans)
    to.blob(RESOURCE_SPANS.resource, resourceFields)
    for (const ofScope of groupBy(spans, ({ scope }) =>
      scope === null ? '' : Buffer.from(scope).toString('latin1'),
    ).values()) {
      const scopeSpans = to.begin(RESOURCE_SPANS.scopeSpans)
      to.blob(SCOPE_SPANS.scope, ofScope[0]!.scope ?? RUNTIME_SCOPE_BYTES)
      for (const span of ofScope) writeQueued(to, span)
      to.end(scopeSpans)
    }
    to.end(resourceSpans)
  }
  return to.bytes.subarray(0, to.length)
}

function writeQueued(to: ProtoWriter, { piece, from, to: end, isShort }: QueuedSpan<SpanSource>): void {
  if (!isShort) return to.part(SCOPE_SPANS.spans, piece.memory, from, end)
  const mark = to.begin(SCOPE_SPANS.spans)
  encodeShort(to, piece.memory, from)
  to.end(mark)
}

function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
