import { after } from 'node:test'

/** What all files of one process share ends with the process. This is loaded before any of them, so that its hook is that of none, and comes after those of a file that is alone. */
const ends: (() => Promise<void>)[] = []

export function endWithProcess(end: () => Promise<void>): void {
  ends.push(end)
}

/** For a program that is no test: nobody else calls this there. */
export async function endShared(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end()
}

if (process.env.NODE_TEST_CONTEXT !== undefined) setImmediate(() => after(endShared))
