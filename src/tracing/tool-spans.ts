// Spans around calls of tools.
import { SpanKind } from '@opentelemetry/api'
import type { CallDetails, CausalContext, DescribeCall, SpanAttributes, ToolTracing } from '../contracts/tracing.ts'
import { causality, NO_CAUSE } from '../core/causality/context.ts'
import { ATTR } from './attributes.ts'
import { type SpanMaker, SpanScope, type ThreadScope } from './scope.ts'

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const

/** The part that all spans of one tool's method have in common. */
interface Call {
  readonly name: string
  readonly attributes: SpanAttributes
}

/** Makes a span around each tool call that belongs to a trace. A call outside of all traces, such as a registration, has none. */
export class ToolSpans implements ToolTracing {
  readonly #spans: SpanMaker
  readonly #calls = new Map<string, Map<string, Call>>()

  constructor(spans: SpanMaker) {
    this.#spans = spans
  }

  run(
    tool: string,
    method: string,
    describe: DescribeCall | undefined,
    args: readonly unknown[],
    call: () => unknown,
  ): unknown {
    const cause = causality.getStore() ?? NO_CAUSE
    const parent = cause.trace as ThreadScope | null
    if (parent !== null && !parent.isSampled) return call()
    const details = describe?.(method, args)
    // Outside of all traces an event begins one: otherwise each of its deliveries would begin one.
    if (parent === null && details?.kind !== 'producer') return call()
    const { name, attributes } = this.#callOf(tool, method)
    const kind = KINDS[details?.kind ?? 'internal']
    const more = details?.attributes
    const scope = this.#spans.openIn(parent, name, kind, more === undefined ? attributes : { ...attributes, ...more })
    if (scope instanceof SpanScope) return runIn(cause, scope, details, call)
    return causality.run({ ...cause, trace: scope }, call)
  }

  #callOf(tool: string, method: string): Call {
    const known = this.#calls.get(tool)?.get(method)
    if (known !== undefined) return known
    const call = { name: `${tool}.${method}`, attributes: { [ATTR.TOOL]: tool, [ATTR.METHOD]: method } }
    this.#calls.set(tool, (this.#calls.get(tool) ?? new Map<string, Call>()).set(method, call))
    return call
  }
}

function runIn(cause: CausalContext, scope: SpanScope, details: CallDetails | undefined, call: () => unknown): unknown {
  let result: unknown
  try {
    result = causality.run({ ...cause, trace: scope }, call)
  } catch (thrown) {
    scope.fail(thrown)
    throw thrown
  }
  const ended = (outcome: unknown): void => {
    const more = details?.ofResult?.(outcome)
    if (more !== undefined) scope.span.setAttributes(more)
    scope.end()
  }
  // Not chained: the caller gets the tool's own promise, which settles no later than without tracing.
  if (result instanceof Promise) result.then(ended, (thrown) => scope.fail(thrown))
  else ended(result)
  return result
}
