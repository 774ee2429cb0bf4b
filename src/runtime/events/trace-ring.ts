// The last events as records, and trees of cause and effect made of them.
import type { EventRecord } from '../../contracts/event-bus.ts'
import type { TraceContext } from '../../contracts/tracing.ts'
import { sampledTraceIdOf } from '../../core/causality/context.ts'
import { isoTimestamp } from '../../core/causality/ids.ts'
import { splitKeys } from './publication.ts'

/** Maximum number of records `/system/traces/flat` shows. */
export const TRACE_RECORDS = 500

/** One event as the hub keeps it, formatted when it is read. */
export interface Trace {
  readonly id: string
  readonly parentId: string | null
  readonly event: string
  readonly emitter: string
  readonly subscribers: readonly string[]
  readonly payloadKeys: string
  readonly timestampMs: number
  readonly requestId: string | null
  readonly trace: TraceContext
}

export function recordOf(trace: Trace): EventRecord {
  return {
    id: trace.id,
    parent_id: trace.parentId,
    event: trace.event,
    emitter: trace.emitter,
    subscribers: [...trace.subscribers],
    payload_keys: splitKeys(trace.payloadKeys),
    timestamp: isoTimestamp(trace.timestampMs),
    request_id: trace.requestId,
    trace_id: sampledTraceIdOf(trace.trace),
  }
}

/** The last events, including those of the previous process. */
export class TraceRing {
  readonly #slots: (Trace | undefined)[] = new Array(TRACE_RECORDS).fill(undefined)
  #count = 0
  /** Ids of events of the previous process: unfinished ones are published here again. */
  #restored = new Set<string>()

  /** @param traces of the previous process, oldest first */
  restore(traces: readonly Trace[]): void {
    for (const trace of traces) if (this.push(trace)) this.#restored.add(trace.id)
  }

  /** @returns false for an event already in the ring */
  push(trace: Trace): boolean {
    if (this.#restored.size > 0 && this.#isRestored(trace.id)) return false
    this.#slots[this.#count++ % TRACE_RECORDS] = trace
    return true
  }

  #isRestored(id: string): boolean {
    if (this.#restored.has(id)) return true
    // All of them have left the ring by now.
    if (this.#count >= 2 * TRACE_RECORDS) this.#restored.clear()
    return false
  }

  /** Oldest first, by the time of publication: the events of a busy lane may arrive late. */
  records(): EventRecord[] {
    const from = Math.max(0, this.#count - TRACE_RECORDS)
    const traces: Trace[] = []
    for (let n = from; n < this.#count; n++) traces.push(this.#slots[n % TRACE_RECORDS]!)
    return traces.sort((a, b) => a.timestampMs - b.timestampMs).map(recordOf)
  }
}

/** A node of the causal tree. `id`, `event` and `children` are specified; the other fields name publisher, time and request. */
export interface TreeNode extends Omit<EventRecord, 'parent_id' | 'payload_keys'> {
  children: TreeNode[]
}

/** Builds a forest of event records, in their order. A record without its parent is a root. */
export function causalForest(records: readonly EventRecord[]): TreeNode[] {
  const nodes = new Map<string, TreeNode>()
  for (const { parent_id, payload_keys, ...node } of records) nodes.set(node.id, { ...node, children: [] })
  const roots: TreeNode[] = []
  for (const { id, parent_id } of records) {
    const siblings = (parent_id !== null && parent_id !== id && nodes.get(parent_id)?.children) || roots
    siblings.push(nodes.get(id)!)
  }
  return roots
}
