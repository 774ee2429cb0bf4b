// The tool `state` in the memory of the process.
import type { Owner } from '../../contracts/common.ts'
import type { State } from '../../contracts/state.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { withCached } from '../../stores/state/cached.ts'
import { checkKey, checkNamespace, checkStep, checkTtl, toJson } from '../../stores/state/input.ts'
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
    // Arguments are checked in the caller's thread: a fault needs no message to the primary, and its stack names the caller.
    const call = (method: StoreMethod, ...args: unknown[]) => this.#runtime.callPrimary(method, args)
    return withCached({
      get: async <T>(key: string, options?: { namespace?: string }) => {
        const text = (await call('get', checkNamespace(options), checkKey(key))) as string | null
        return text === null ? null : (JSON.parse(text) as T)
      },
      set: async (key, value, options) => {
        await call('set', checkNamespace(options), checkKey(key), toJson(value), checkTtl(options), plugin)
      },
      delete: async (key, options) => (await call('delete', checkNamespace(options), checkKey(key))) as boolean,
      has: async (key, options) => (await call('has', checkNamespace(options), checkKey(key))) as boolean,
      increment: async (key, by = 1, options) => {
        const [namespace, name] = [checkNamespace(options), checkKey(key)]
        const sum = await call('increment', namespace, name, checkStep(by), checkTtl(options), plugin)
        return sum as number
      },
      compareAndSet: async (key, expected, next, options) => {
        const [namespace, name] = [checkNamespace(options), checkKey(key)]
        const [before, after, ttlMs] = [toJson(expected), toJson(next), checkTtl(options)]
        return (await call('compareAndSet', namespace, name, before, after, plugin, ttlMs)) as boolean
      },
      keys: async (options) => (await call('keys', checkNamespace(options))) as string[],
      clear: async (options) => {
        await call('clear', checkNamespace(options))
      },
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
