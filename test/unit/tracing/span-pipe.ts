import { createSpanRing, SpanWriter } from '../../../src/tracing/encoding/span-writer.ts'
import { exportRequest } from '../../../src/tracing/export-thread/export-request.ts'
import type { QueuedSpan } from '../../../src/tracing/export-thread/span-queue.ts'
import { SpanSource } from '../../../src/tracing/export-thread/span-source.ts'
import { EXPORT } from '../../support/otlp/definitions.ts'
import { type Decoded, decodeRequest } from '../../support/otlp/span.ts'

export const RESOURCE = { 'service.name': 'shop', 'heddle.lane': 3 }

/** A thread that leaves spans, and the one that exports them: what comes out is read by the published definitions. */
export function pipe({ isForConsole = false } = {}) {
  const ring = createSpanRing()
  const writer = new SpanWriter(ring, isForConsole)
  const source = new SpanSource(ring, RESOURCE)
  const fetch = (): QueuedSpan<SpanSource>[] => {
    const batch: QueuedSpan<SpanSource>[] = []
    while (source.fetch(100, (span) => batch.push(span)) > 0);
    return batch
  }
  const decoded = (batch = fetch()): Decoded =>
    decodeRequest(EXPORT.requestDeserialize(Buffer.from(exportRequest(batch))))
  return { writer, source, fetch, decoded }
}
