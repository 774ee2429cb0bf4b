// Node's counts of the timers and immediates that hold a loop, where a stop has left them wrong.
import { type Entry, entryOf } from './stopped-immediate.ts'

/** How Node describes the symbol under which each says that it is counted; undocumented, and in every version so far (lib/internal/timers.js). */
const REFED = 'refed'

// Taken before plugins can replace it.
const resourcesOf = process.getActiveResourcesInfo.bind(process)
const nothing = (): void => {}

const countOf = (kind: 'Timeout' | 'Immediate'): number => resourcesOf().filter((name) => name === kind).length

const refedOf = (held: object): symbol | undefined =>
  Object.getOwnPropertySymbols(held).find(({ description }) => description === REFED)

/** Counts one down: `held`, which is not counted, says that it is. */
function uncount(held: { unref(): unknown }, refed: symbol): void {
  held.unref()
  Object.assign(held, { [refed]: true })
  held.unref()
}

/**
 * Lets a loop end that timers hold. One whose callback was stopped is counted for ever, and those of plugins cannot be listed: the count is taken
 * down until Node names none.
 */
export function uncountTimers(): void {
  for (let left = countOf('Timeout'); left > 0; left--) {
    const timer = setTimeout(nothing)
    const refed = refedOf(timer)
    if (refed !== undefined) uncount(timer, refed)
    clearTimeout(timer)
  }
}

/**
 * Lets a loop end that only lost immediates hold. Where the first of a turn was stopped, Node forgets those behind it, and counts them for ever: the loop
 * turns without a pause. Those that are counted, and in no list of Node's, are counted down.
 */
export function uncountLostImmediates(): void {
  if (countOf('Immediate') === 0) return
  const probe = setImmediate(() => {
    const refed = refedOf(probe)
    if (refed === undefined) return
    let known = 0
    const isRefed = (entry: Entry): boolean => (entry as Entry & Record<symbol, unknown>)[refed] === true
    for (let entry = entryOf(probe)._idleNext; entry !== null; entry = entry._idleNext) if (isRefed(entry)) known++
    // The last of those whose turn comes next.
    const last = entryOf(setImmediate(nothing))
    for (let entry: Entry | null = last; entry !== null; entry = entry._idlePrev) if (isRefed(entry)) known++
    for (let lost = countOf('Immediate') - known; lost > 0; lost--) uncount(setImmediate(nothing), refed)
  })
}
