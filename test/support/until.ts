/** How often is looked at first, and in the end: to ask another process takes time from it. */
const LOOK_MIN_MS = 10
const LOOK_MAX_MS = 50

/** Waits until a condition holds: for what another thread or process does. @throws after `timeoutMs` */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  timeoutMs = 30_000,
): Promise<NonNullable<T>> {
  const deadlineMs = Date.now() + timeoutMs
  for (let pauseMs = LOOK_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.1, LOOK_MAX_MS)) {
    const value = await condition()
    if (value) return value
    if (Date.now() > deadlineMs) throw new Error(`Not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
