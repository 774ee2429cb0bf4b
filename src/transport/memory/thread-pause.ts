/** Nobody else has it, so nobody wakes who waits on it. */
const own = new Int32Array(new SharedArrayBuffer(4))

/** Lets this thread stand still: at the end of the process, when no loop turns any more. */
export function pauseThread(durationMs: number): void {
  Atomics.wait(own, 0, 0, durationMs)
}
