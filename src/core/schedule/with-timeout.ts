/**
 * What a promise gives in time, else `late`. The promise goes on after that, and nobody hears of it any more.
 * @param timeoutMs milliseconds from now
 * @throws what the promise rejects with in time
 */
export async function withTimeout<T, L>(promise: Promise<T>, timeoutMs: number, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<L>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, late)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
