let lastMs = Number.NaN
let lastText = ''

/** `YYYY-MM-DDTHH:mm:ss.sssZ`. Formatting costs more than most of what is stamped, and under load a millisecond is asked for a hundred times. */
export function isoTimestamp(epochMs: number): string {
  const ms = Math.trunc(epochMs)
  if (ms !== lastMs) {
    lastMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}
