import { releaseThreads } from './threads.ts'

/** What a plugin starts after the thread has let go keeps it for this long at most, milliseconds. */
const LET_GO_MS = 50

/** Undocumented, deprecated in the documentation only, and in every version so far. */
interface Handles {
  _getActiveHandles?: () => { unref?: () => void }[]
}

// Taken before plugins can replace them.
const handlesOf = (process as Handles)._getActiveHandles?.bind(process) ?? (() => [])
const resourcesOf = process.getActiveResourcesInfo.bind(process)

/**
 * Lets go of everything that keeps the loop of this thread alive: ports, sockets, timers. What is left is what the loop itself waits for,
 * native calls above all. A thread that is ended while one of them is under way aborts the process, where the call ends in an addon that then calls
 * JavaScript (nodejs/node#34567).
 * @param onFree called when nothing is under way any more; the thread ends by itself unless that keeps it
 */
export function letGo(onFree: () => void): void {
  const again = setInterval(release, LET_GO_MS).unref()
  process.once('beforeExit', () => {
    clearInterval(again)
    onFree()
  })
  release()
}

function release(): void {
  for (const handle of handlesOf()) handle.unref?.()
  releaseThreads()
  releaseTimers()
}

/**
 * Node counts the timers that hold the loop. One whose callback was stopped is counted for ever, and those of plugins cannot be listed. So
 * the count is taken down by a timer that says that it is counted, and is not, until Node names none.
 */
function releaseTimers(): void {
  const timer = setTimeout(() => {}, LET_GO_MS).unref()
  clearTimeout(timer)
  const refed = Object.getOwnPropertySymbols(timer).find(({ description }) => description === 'refed')
  if (refed === undefined) return
  for (let left = resourcesOf().filter((name) => name === 'Timeout').length; left > 0; left--) {
    const counted = setTimeout(() => {}, LET_GO_MS).unref() as NodeJS.Timeout & Record<symbol, boolean>
    counted[refed] = true
    counted.unref()
    clearTimeout(counted)
  }
}
