const waiting: (() => void)[] = []

/**
 * Runs a function of the runtime once this turn of the loop has read all of its input. One `setImmediate` serves all that wait: it is what
 * costs. The functions run in the causal context of whoever was first, so they must not run code of plugins, and must not throw.
 */
export function atTurnEnd(run: () => void): void {
  if (waiting.push(run) === 1) setImmediate(runAll)
}

/** What ran may have been stopped, and the immediates of that turn with it. */
export function recoverTurnEnd(): void {
  if (waiting.length > 0) setImmediate(runAll)
}

function runAll(): void {
  try {
    // Its length is read each time: what a function adds still runs in this turn.
    for (let n = 0; n < waiting.length; n++) waiting[n]!()
  } finally {
    // Left as it is, the list would never be run again.
    waiting.length = 0
  }
}
