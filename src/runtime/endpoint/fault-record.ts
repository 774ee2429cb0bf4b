import { messageOf, stackOf } from '../../core/errors/description.ts'

/** The log record of an error that a handler has thrown. */
export function faultRecord(
  path: string,
  requestId: string,
  thrown: unknown,
): { message: string; fields: Record<string, unknown> } {
  const fields: Record<string, unknown> = { request_id: requestId, stack: stackOf(thrown) }
  const cause = stackOf(causeOf(thrown))
  if (cause !== undefined) fields.cause = cause
  return { message: `${path} failed: ${messageOf(thrown)}`, fields }
}

function causeOf(thrown: unknown): unknown {
  try {
    return (thrown as { cause?: unknown } | null)?.cause
  } catch {
    // Its members cannot be read.
    return undefined
  }
}
