// The tool `state` in the memory of the process.
import type { Owner } from '../../contracts/common.ts'
import type { State } from '../../contracts/state.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { stateOf } from '../../stores/state/state.ts'
import { MemoryStore } from './store.ts'

const METHODS = new Set(['get', 'set', 'has', 'delete', 'increment', 'compareAndSet', 'keys', 'clear'] as const)
type StoreMethod = typeof METHODS extends Set<infer Method> ? Method : never

/** State in the memory of the primary. Every thread asks the primary, so all threads see an increment of one lane. */
export default class MemoryStateTool implements Tool {
  readonly name = 'state'
  #runtime: ToolRuntime
  /** Used in the primary only. */
  #store: MemoryStore

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
    this.#store = new MemoryStore(runtime.settings.stateMaxBytes)
  }

  api(owner?: Owner): State {
    const plugin = owner?.name ?? ''
    const ask = (method: StoreMethod, ...args: unknown[]) => this.#runtime.callPrimary(method, args) as Promise<never>
    return stateOf({
      get: (namespace, key) => ask('get', namespace, key),
      set: (namespace, key, text, ttlMs) => ask('set', namespace, key, text, ttlMs, plugin),
      delete: (namespace, key) => ask('delete', namespace, key),
      has: (namespace, key) => ask('has', namespace, key),
      increment: (namespace, key, by, ttlMs) => ask('increment', namespace, key, by, ttlMs, plugin),
      compareAndSet: (namespace, key, expected, next, ttlMs) =>
        ask('compareAndSet', namespace, key, expected, next, ttlMs, plugin),
      keys: (namespace) => ask('keys', namespace),
      clear: (namespace) => ask('clear', namespace),
    })
  }

  serve(method: string, args: readonly unknown[]): unknown {
    if (!METHODS.has(method as StoreMethod)) throw new TypeError(`state has no method ${method}`)
    const call = this.#store[method as StoreMethod] as (...args: readonly unknown[]) => unknown
    return call.apply(this.#store, args as unknown[])
  }

  stop(): void {
    this.#store.close()
  }
}
