import type { ReceivedSpan } from './span.ts'

/**
 * The spans of one trace, a line `KIND name` each, children indented by two blanks below their parent in the order in which they
 * started. A span whose parent has not arrived stands at the left and says so.
 */
export function formatTree(spans: readonly ReceivedSpan[]): string {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const isTop = ({ parentSpanId }: ReceivedSpan): boolean => !ids.has(parentSpanId)
  const lines: string[] = []
  const write = (span: ReceivedSpan, depth: number): void => {
    const orphan = depth === 0 && span.parentSpanId !== '' ? ` (parent ${span.parentSpanId} not received)` : ''
    lines.push(`${'  '.repeat(depth)}${span.kind} ${span.name}${orphan}`)
    const children = spans.filter(({ parentSpanId }) => parentSpanId === span.spanId)
    for (const child of byStart(children)) write(child, depth + 1)
  }
  for (const span of byStart(spans.filter(isTop))) write(span, 0)
  return lines.join('\n')
}

/** All traces below each other, for a message. */
export function formatTraces(spans: readonly ReceivedSpan[]): string {
  const traceIds = [...new Set(spans.map(({ traceId }) => traceId))]
  return traceIds.map((id) => `trace ${id}\n${formatTree(spans.filter(({ traceId }) => traceId === id))}`).join('\n')
}

function byStart(spans: readonly ReceivedSpan[]): ReceivedSpan[] {
  return spans.toSorted((a, b) => (a.startNs < b.startNs ? -1 : a.startNs > b.startNs ? 1 : 0))
}
