const POLL_MS = 5

/** Waits until nothing is pending. @returns how many still are pending after `timeoutMs` */
export async function pendingAfter(pending: () => number, timeoutMs: number): Promise<number> {
  const deadlineMs = performance.now() + timeoutMs
  while (pending() > 0 && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  return pending()
}
