/** A test of `node:test`, or any other object with `after`. */
export interface TestOwner {
  /** Registers a function that runs when the test is over. */
  after(end: () => Promise<void>): void
}

/** The error that the test has failed with so far; undefined also when the runner does not say. */
export function failureOf(owner: TestOwner): unknown {
  return (owner as { error?: unknown }).error ?? undefined
}

export function isOwner(value: unknown): value is TestOwner {
  return typeof value === 'object' && value !== null && typeof (value as TestOwner).after === 'function'
}
