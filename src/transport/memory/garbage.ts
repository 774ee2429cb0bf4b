// Collects garbage of shared memory, which V8 does not count.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Shared memory that is let go piles up to this before it is collected, bytes: some lanes' worth. */
const PILE_MAX_BYTES = 8 << 20
/** What is about to be let go beside it is collected with it, milliseconds. */
const SETTLE_MS = 300

let collect: ((options?: { type: 'minor' }) => void) | undefined
let pileBytes = 0
let timer: NodeJS.Timeout | undefined

/** Gets what collects from V8, by a context of its own: a thread that is stopped while V8 makes one does not end. So a lane does it before anything can stop it. */
export function readyToCollect(): void {
  if (collect !== undefined) return
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc') as typeof collect
}

/** V8 lets garbage pile up, buffers above all, before it collects it. A collection takes 10 to 50 ms. */
export function collectGarbage(): void {
  readyToCollect()
  collect!()
  // Buffers are freed in the background, and count until V8 knows it: the next collection waits for that.
  collect!({ type: 'minor' })
}

/** This thread needs the memory no longer. V8 counts none that threads share, so it would not look for it: each reload left megabytes. */
export function letGo(...memories: { readonly byteLength: number }[]): void {
  for (const { byteLength } of memories) pileBytes += byteLength
  if (pileBytes < PILE_MAX_BYTES || timer !== undefined) return
  timer = setTimeout(() => {
    timer = undefined
    pileBytes = 0
    collectGarbage()
  }, SETTLE_MS).unref()
}
