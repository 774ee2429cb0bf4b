import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { createRecordRing, RecordReader, RecordWriter } from '../../../src/recording/ring.ts'
import { readableSpan, SPAN_RING_BYTES, type SpanRecord } from '../../../src/tracing/span-record.ts'
import { EXPORT } from '../../support/otlp/definitions.ts'
import { type Decoded, decodeRequest } from '../../support/otlp/span.ts'

export const RESOURCE = { 'service.name': 'shop', 'heddle.lane': 3 }

/** A thread that leaves spans, and the one that exports them: what comes out is read by the published definitions. */
export function pipe() {
  const ring = createRecordRing(SPAN_RING_BYTES)
  const writer = new RecordWriter<SpanRecord>(ring)
  const reader = new RecordReader(ring)
  const resource = resourceFromAttributes(RESOURCE)
  const fetch = (): ReadableSpan[] => {
    const batch: ReadableSpan[] = []
    while (reader.read(100, (json) => batch.push(readableSpan(json, resource))) > 0);
    return batch
  }
  const decoded = (batch = fetch()): Decoded =>
    decodeRequest(EXPORT.requestDeserialize(Buffer.from(ProtobufTraceSerializer.serializeRequest(batch)!)))
  return { writer, reader, fetch, decoded }
}
