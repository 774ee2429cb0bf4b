import { causality, type Origin } from '../../core/causality/context.ts'
import type { PoolUse } from '../../transport/messages.ts'

/** Uses that a report names at most. */
const USES_MAX = 10

interface ActiveRequests {
  /** Undocumented, deprecated in the documentation only, and in every version so far. */
  _getActiveRequests?: () => object[]
}

/** This thread's calls to files and DNS that have not ended. Each holds a thread of libuv's pool, or waits for one. */
export function poolRequests(): object[] {
  return (process as ActiveRequests)._getActiveRequests?.() ?? []
}

/**
 * The handlers that made them, those with the most calls first. Costs nothing until it is asked: AsyncLocalStorage of Node 22 leaves what
 * was running with every request that it made. Calls of which that is not known are left out.
 */
export function poolUses(): PoolUse[] {
  const key = (causality as unknown as { kResourceStore?: symbol }).kResourceStore
  if (key === undefined) return []
  const uses = new Map<string, PoolUse>()
  for (const request of poolRequests()) {
    const origin = (request as Record<symbol, { origin?: Origin | null } | undefined>)[key]?.origin
    if (origin === undefined || origin === null) continue
    const name = `${origin.plugin} ${origin.handler}`
    const use = uses.get(name)
    if (use === undefined) uses.set(name, { ...origin, calls: 1 })
    else use.calls++
  }
  return [...uses.values()].sort((a, b) => b.calls - a.calls).slice(0, USES_MAX)
}
