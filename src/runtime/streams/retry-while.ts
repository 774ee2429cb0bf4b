import { setTimeout as sleep } from 'node:timers/promises'

export interface RetryOptions {
  /** Between two attempts, milliseconds. */
  pauseMs: number
  /** Takes the fault of an attempt. @returns true when it is not to be tried again */
  isFinal?: (fault: unknown) => boolean
}

/**
 * Tries something until the store has done it.
 * @param isWanted asked before each attempt: false ends it
 */
export async function retryWhile(
  isWanted: () => boolean,
  attempt: () => Promise<unknown>,
  { pauseMs, isFinal }: RetryOptions,
): Promise<void> {
  while (isWanted()) {
    try {
      await attempt()
      return
    } catch (fault) {
      if (isFinal?.(fault)) return
    }
    await sleep(pauseMs)
  }
}
