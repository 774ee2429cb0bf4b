/** The promise that `settled` has made last. */
let last: Promise<unknown> | null = null

/**
 * A promise of what is there already. A tool that is done before it returns makes its promises here, so that whoever measures the call
 * need not wait for one: each promise that follows another costs about 0.4 µs.
 */
export function settled<T>(value: T): Promise<T> {
  const promise = Promise.resolve(value)
  last = promise
  return promise
}

/** True for what `settled` has made last: asked right after the call that has made it. */
export function isSettled(promise: Promise<unknown>): boolean {
  const isLast = promise === last
  last = null
  return isLast
}
