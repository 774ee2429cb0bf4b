let lastMs = Number.NaN
let lastText = ''

/** `YYYY-MM-DDTHH:mm:ss.sssZ`. The last text is kept: formatting is slow, and under load the same millisecond is formatted a hundred times. */
export function isoTimestamp(epochMs: number): string {
  const ms = Math.trunc(epochMs)
  if (ms !== lastMs) {
    lastMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}
