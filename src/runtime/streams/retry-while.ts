import { setTimeout as sleep } from 'node:timers/promises'

export interface RetryOptions {
  /** Between two attempts, milliseconds. */
  pauseMs: number
  /** Told of each failed attempt. */
  onFault?: (fault: unknown) => void
  /** True for a fault after which it is not tried again. */
  isFinal?: (fault: unknown) => boolean
}

/**
 * Tries something until the store has done it.
 * @param isWanted asked before each attempt: false ends it
 */
export async function retryWhile(
  isWanted: () => boolean,
  attempt: () => Promise<unknown>,
  { pauseMs, onFault, isFinal }: RetryOptions,
): Promise<void> {
  while (isWanted()) {
    try {
      await attempt()
      return
    } catch (fault) {
      onFault?.(fault)
      if (isFinal?.(fault)) return
    }
    await sleep(pauseMs)
  }
}
