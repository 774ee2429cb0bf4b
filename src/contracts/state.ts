// Shared state, and the options of sessions, which are kept there.

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export interface Namespaced {
  /** Keys in different namespaces are different keys. Default `default`. */
  namespace?: string
}
export interface Expiring {
  /** Milliseconds until the key expires, a positive integer. Default: it does not expire. */
  ttlMs?: number
}

/** Shared state that does not outlive its store: one store for all threads, or for all replicas when it is Redis. Values are JSON. */
export interface State {
  /** The value, or null when there is none. */
  get<T = Json>(key: string, options?: Namespaced): Promise<T | null>
  /** Sets the value. Without `ttlMs` the key does not expire, even if it did before. */
  set(key: string, value: unknown, options?: Namespaced & Expiring): Promise<void>
  /** True when the key existed. */
  delete(key: string, options?: Namespaced): Promise<boolean>
  has(key: string, options?: Namespaced): Promise<boolean>
  /**
   * Adds `by` (an integer, default 1) atomically and returns the new number. `ttlMs` takes effect only when the key is created: a fixed window.
   * @throws STATE_NOT_A_NUMBER when the value is not an integer
   */
  increment(key: string, by?: number, options?: Namespaced & Expiring): Promise<number>
  /**
   * Sets `next` if the value deeply equals `expected` (null: there is no value). True when it was set. The key keeps its time to live, unless the options
   * have a `ttlMs`, which begins anew.
   */
  compareAndSet(key: string, expected: unknown, next: unknown, options?: Namespaced & Expiring): Promise<boolean>
  /**
   * The value of the key. Without one `make` is called, and what it returns is set for `ttlMs` milliseconds (a positive integer). Whoever else asks meanwhile, in
   * any thread or replica that shares the store, waits for it. What `make` throws is thrown to those who wait in its thread, and nothing is set.
   */
  cached<T = Json>(key: string, ttlMs: number, make: () => T | Promise<T>, options?: Namespaced): Promise<T>
  /** All keys of the namespace, in any order. */
  keys(options?: Namespaced): Promise<string[]>
  /** Deletes the whole namespace. */
  clear(options?: Namespaced): Promise<void>
}
