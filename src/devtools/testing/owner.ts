/** A test of `node:test`, or whatever else ends what it has started: all that is needed is `after`. */
export interface TestOwner {
  /** Registers what runs when the test is over. */
  after(end: () => Promise<void>): void
}

/** What the test failed with by now; nothing where the runner does not tell. */
export function failureOf(owner: TestOwner): unknown {
  return (owner as { error?: unknown }).error ?? undefined
}

export function isOwner(value: unknown): value is TestOwner {
  return typeof value === 'object' && value !== null && typeof (value as TestOwner).after === 'function'
}
