// What Node needs to go on behind an immediate that was stopped in its callback.

/** As Node keeps it; undocumented, and in every version so far (lib/internal/timers.js, `processImmediate`). */
export interface Entry {
  _destroyed: boolean
  _onImmediate: () => void
  _idleNext: Entry | null
  _idlePrev: Entry | null
  unref(): void
}

export const entryOf = (immediate: NodeJS.Immediate): Entry => immediate as unknown as Entry
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
