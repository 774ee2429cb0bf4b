/** A value in the primary, a promise in a lane: always await it. */
export type Awaitable<T> = T | Promise<T>
