// What Node needs to go on behind an immediate that was stopped in its callback.

/** As Node keeps it; undocumented, and in every version so far (lib/internal/timers.js, `processImmediate`). */
interface Entry {
  _destroyed: boolean
  _onImmediate: () => void
  _idleNext: Entry | null
  _idlePrev: Entry | null
  unref(): void
}

/** How Node names the property of an immediate that holds the loop. */
const REFED = 'refed'

// Taken before plugins can replace it.
const resourcesOf = process.getActiveResourcesInfo.bind(process)

const entryOf = (immediate: NodeJS.Immediate): Entry => immediate as unknown as Entry
const nothing = (): void => {}

/**
 * True for what Node throws, turn after turn and for ever, when the stopped immediate was not the first of its turn: it has noted it as the next one,
 * and takes it for one that somebody has cleared after the one before.
 */
export const isStuck = (error: unknown): boolean =>
  error instanceof TypeError &&
  error.message.includes("'_idleNext'") &&
  error.stack?.includes('processImmediate') === true

/**
 * Lets Node go on with the immediates behind it.
 * @returns false when this one was not stopped: another one holds them up
 */
export function skipStopped(immediate: NodeJS.Immediate | null): boolean {
  if (immediate === null || !entryOf(immediate)._destroyed) return false
  // It is run once more, does nothing, and is counted down a second time: the one in the middle is counted, and never runs.
  const [before, uncounted, after] = [nothing, nothing, nothing].map((run) => entryOf(setImmediate(run)))
  uncounted!.unref()
  before!._idleNext = after!
  after!._idlePrev = before!
  const stopped = entryOf(immediate)
  stopped._onImmediate = nothing
  stopped._destroyed = false
  return true
}

const counted = (): number => resourcesOf().filter((name) => name === 'Immediate').length

/**
 * Lets a loop end that only lost immediates hold. Where the first of a turn was stopped, Node forgets those behind it, and counts them for ever: the loop
 * turns without a pause. Those that are counted, and in no list of Node's, are counted down.
 */
export function uncountLost(): void {
  if (counted() === 0) return
  const probe = setImmediate(() => {
    const refed = Object.getOwnPropertySymbols(probe).find(({ description }) => description === REFED)
    if (refed === undefined) return
    let known = 0
    const isRefed = (entry: Entry): boolean => (entry as Entry & Record<symbol, unknown>)[refed] === true
    for (let entry = entryOf(probe)._idleNext; entry !== null; entry = entry._idleNext) if (isRefed(entry)) known++
    // The last of those whose turn comes next.
    const last = entryOf(setImmediate(nothing))
    for (let entry: Entry | null = last; entry !== null; entry = entry._idlePrev) if (isRefed(entry)) known++
    for (let lost = counted() - known; lost > 0; lost--) {
      const uncounted = entryOf(setImmediate(nothing))
      uncounted.unref()
      Object.assign(uncounted, { [refed]: true })
      uncounted.unref()
    }
  })
}
