/** Longest time until the clock is looked at again: it may be set meanwhile. Milliseconds; less than what a timer takes. */
const LOOK_MS = 600_000

/**
 * Calls back once when a token's time is up, by the `exp` of its claims in seconds since 1970. Without an `exp` it never does.
 * @param until ends the wait
 */
export function atTokenEnd(claims: unknown, until: AbortSignal, onEnd: () => void): void {
  const exp = (claims as { exp?: unknown } | null | undefined)?.exp
  if (typeof exp !== 'number' || !Number.isFinite(exp) || until.aborted) return
  let timer: NodeJS.Timeout
  const look = (): void => {
    const leftMs = exp * 1000 - Date.now()
    if (leftMs <= 0) return onEnd()
    timer = setTimeout(look, Math.min(leftMs, LOOK_MS)).unref()
  }
  until.addEventListener('abort', () => clearTimeout(timer), { once: true })
  look()
}
