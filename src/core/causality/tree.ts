// Records of events as trees of what has caused what.
import type { EventRecord } from '../../contracts/event-bus.ts'

/** A node of the causal tree. `id`, `event` and `children` are specified; the other fields say who, when and for which request. */
export interface TreeNode {
  id: string
  event: string
  emitter: string
  subscribers: string[]
  timestamp: string
  request_id: string | null
  trace_id: string | null
  children: TreeNode[]
}

/** Makes a forest of event records, in their order. A record whose parent is not among them is a root. */
export function causalForest(records: readonly EventRecord[]): TreeNode[] {
  const nodes = new Map<string, TreeNode>()
  for (const { id, event, emitter, subscribers, timestamp, request_id, trace_id } of records) {
    nodes.set(id, { id, event, emitter, subscribers, timestamp, request_id, trace_id, children: [] })
  }
  const roots: TreeNode[] = []
  for (const { id, parent_id } of records) {
    const siblings = (parent_id !== null && parent_id !== id && nodes.get(parent_id)?.children) || roots
    siblings.push(nodes.get(id)!)
  }
  return roots
}
