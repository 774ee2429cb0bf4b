// Who holds the threads of libuv's pool.
import { lookup } from 'node:dns'
import { stat } from 'node:fs'
import { stat as statLater } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Origin } from '../../contracts/tracing.ts'
import { causality } from '../../core/causality/context.ts'
import type { PoolUse } from '../../transport/messages.ts'

/** Uses that a report names at most. */
const USES_MAX = 10

interface ActiveRequests {
  /** Undocumented, deprecated in the documentation only, and in every version so far. */
  _getActiveRequests?: () => object[]
}

/** A request of libuv, as Node makes one for each call, with the handler that was running. */
interface NotedRequest {
  [ORIGIN]?: Origin | null
}

const ORIGIN = Symbol('origin')
const HERE = fileURLToPath(import.meta.url)
let isNoting = false

/** This thread's calls to files and DNS that have not ended. Each holds a thread of libuv's pool, or waits for one. */
export function poolRequests(): object[] {
  return (process as ActiveRequests)._getActiveRequests?.() ?? []
}

/**
 * From now on each of them knows the handler that has made it. Node keeps the causal context where no JavaScript sees it, but each kind of request gets
 * one property in the context of its call: that is where it is noted.
 */
export function notePoolOrigins(): void {
  if (isNoting) return
  isNoting = true
  const settled = (): void => {}
  noteAt('oncomplete', () => stat(HERE, settled))
  noteAt('oncomplete', () => lookup('localhost', settled))
  noteAt('promise', () => statLater(HERE).then(settled, settled))
}

/** @param call makes one request of a kind, by which the kind is found */
function noteAt(property: string, call: () => unknown): void {
  const before = new Set(poolRequests())
  call()
  const request = poolRequests().find((each) => !before.has(each))
  if (request === undefined || !Object.hasOwn(request, property)) return
  const value = Symbol(property)
  Object.defineProperty(Object.getPrototypeOf(request), property, {
    configurable: true,
    get(this: Record<symbol, unknown>) {
      return this[value]
    },
    set(this: Record<symbol, unknown> & NotedRequest, given: unknown) {
      this[value] = given
      this[ORIGIN] = causality.getStore()?.origin ?? null
    },
  })
}

/** The handlers that made them, those with the most calls first. Calls of which that is not known are left out. */
export function poolUses(): PoolUse[] {
  const uses = new Map<string, PoolUse>()
  for (const request of poolRequests()) {
    const origin = (request as NotedRequest)[ORIGIN]
    if (origin === undefined || origin === null) continue
    const name = `${origin.plugin} ${origin.handler}`
    const use = uses.get(name)
    if (use === undefined) uses.set(name, { ...origin, calls: 1 })
    else use.calls++
  }
  return [...uses.values()].sort((a, b) => b.calls - a.calls).slice(0, USES_MAX)
}
