import { readFileSync } from 'node:fs'

/** How often is looked at first, and in the end: to ask another process takes time from it. */
const LOOK_MIN_MS = 10
const LOOK_MAX_MS = 50

/** A wait goes on for so many times its limit where the cores are contended all the time. */
const CONTENDED_FACTOR = 10

/** For how long some task of the machine has waited for a core, milliseconds; 0 where the system does not say. Source: Documentation/accounting/psi.rst. */
function contendedMs(): number {
  try {
    return Number(/^some .* total=(\d+)/.exec(readFileSync('/proc/pressure/cpu', 'latin1'))?.[1] ?? 0) / 1000
  } catch {
    return 0
  }
}

/** @returns whether `timeoutMs` from now is over; while the cores are contended it is longer */
export function limitOf(timeoutMs: number): () => boolean {
  const startedMs = performance.now()
  const before = contendedMs()
  return () => {
    const passedMs = performance.now() - startedMs
    if (passedMs <= timeoutMs) return false
    const part = Math.min(1, (contendedMs() - before) / passedMs)
    return passedMs > timeoutMs * (1 + (CONTENDED_FACTOR - 1) * part ** 2)
  }
}

/** How long a condition may take to answer, at least, milliseconds: a server that is frozen never does. */
const ANSWER_MS = 120_000

/** Waits until a condition holds: for what another thread or process does. @throws after `timeoutMs` */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  timeoutMs = 30_000,
): Promise<NonNullable<T>> {
  const isLate = limitOf(timeoutMs)
  for (let pauseMs = LOOK_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.1, LOOK_MAX_MS)) {
    const found = condition()
    const value = found instanceof Promise ? await within(found, () => what, Math.max(ANSWER_MS, timeoutMs)) : found
    if (value) return value
    if (isLate()) throw new Error(`Not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** How often a wait looks whether its time is over, milliseconds. */
const LATE_LOOK_MS = 500

/** Waits for a promise as `until` does for a condition. @throws after `timeoutMs`, with what was waited for */
export async function within<T>(work: Promise<T>, what: () => string, timeoutMs: number): Promise<T> {
  const isLate = limitOf(timeoutMs)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      if (isLate()) reject(new Error(`Not within ${timeoutMs} ms: ${what()}`))
    }, LATE_LOOK_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearInterval(timer)
  }
}
