/** One turn of the thread's loop: what the code before has thrown into it, or rejected with nobody waiting, has come up by then. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
