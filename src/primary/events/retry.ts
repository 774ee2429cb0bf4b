/** Longest pause before a retry. */
export const RETRY_MAX_DELAY_MS = 300_000

/**
 * Pause before the attempt that follows attempt number `attempt`: exponential, with full jitter.
 * Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function retryDelayMs(attempt: number, backoffMs: number, random: () => number): number {
  return random() * Math.min(RETRY_MAX_DELAY_MS, backoffMs * 2 ** (attempt - 1))
}
