/** At once in the primary, a promise in a lane: await it. */
export type Awaitable<T> = T | Promise<T>
