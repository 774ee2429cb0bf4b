import type { OtlpReceiver } from '../../support/otlp/receiver.ts'
import type { ReceivedSpan } from '../../support/otlp/span.ts'

/** Waits until a trace is whole, and gives it as text. @param last name of a span that is among the last to arrive */
export async function traceOf(receiver: OtlpReceiver, traceId: string, last: string): Promise<string> {
  const isWhole = (spans: readonly ReceivedSpan[]): boolean => {
    const own = spans.filter((span) => span.traceId === traceId)
    const ids = new Set(own.map(({ spanId }) => spanId))
    // All parents have come: what has ended first has come first.
    return (
      own.some(({ name }) => name === last) &&
      own.every((span) => span.parentSpanId === '' || ids.has(span.parentSpanId))
    )
  }
  await receiver.until(isWhole, `the whole trace ${traceId}, with ${last}`)
  return receiver.tree(traceId)
}

/** The spans of a trace by name; the last one of a name. */
export function byName(receiver: OtlpReceiver, traceId: string): Record<string, ReceivedSpan> {
  return Object.fromEntries(receiver.spans.filter((span) => span.traceId === traceId).map((span) => [span.name, span]))
}
