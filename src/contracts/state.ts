export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export interface Namespaced {
  /** Keys of different namespaces never meet. Default `default`. */
  namespace?: string
}
export interface Expiring {
  /** Milliseconds until the key is gone; left out: never. A positive integer. */
  ttlMs?: number
}

/** Volatile shared state: one store for all threads (and, on a shared store, for all replicas). Values are JSON. */
export interface State {
  /** The value, or null when there is none. */
  get<T = Json>(key: string, options?: Namespaced): Promise<T | null>
  /** Sets the value and its time to live (none given: none). */
  set(key: string, value: unknown, options?: Namespaced & Expiring): Promise<void>
  /** True when there was something to delete. */
  delete(key: string, options?: Namespaced): Promise<boolean>
  has(key: string, options?: Namespaced): Promise<boolean>
  /**
   * Adds `by` (default 1, an integer) atomically and returns the new number. `ttlMs` is set only when the key is created: a fixed window.
   * @throws STATE_NOT_A_NUMBER when the key holds something else than an integer
   */
  increment(key: string, by?: number, options?: Namespaced & Expiring): Promise<number>
  /** Sets `next` only when the value deeply equals `expected` (null: no value). Keeps the time to live. True when it did. */
  compareAndSet(key: string, expected: unknown, next: unknown, options?: Namespaced): Promise<boolean>
  /** All keys of the namespace, in no order. */
  keys(options?: Namespaced): Promise<string[]>
  /** Deletes the whole namespace. */
  clear(options?: Namespaced): Promise<void>
}
