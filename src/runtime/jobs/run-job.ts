import type { JobDefinition } from '../../contracts/scheduler.ts'
import type { CodeTracing } from '../../contracts/tracing.ts'
import { causality } from '../../core/causality/context.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/trace-context.ts'

/** Runs a job once. It has no cause, so it begins a trace of its own while tracing is on. */
export async function runJob({ name, handler, owner }: JobDefinition, tracing: CodeTracing | null): Promise<void> {
  if (tracing === null) return void (await handler.call(owner.instance))
  const span = tracing.open(NO_TRACE_CONTEXT, `${owner.name}/${name}`, {
    'heddle.plugin': owner.name,
    'heddle.job': name,
  })
  try {
    await causality.run({ eventId: null, requestId: null, trace: span }, () => handler.call(owner.instance))
    span.end()
  } catch (thrown) {
    span.fail(thrown)
    throw thrown
  }
}
