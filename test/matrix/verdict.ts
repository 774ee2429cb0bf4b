import type { Cell } from './cell.ts'

/** Longest time without an answer of an innocent route. */
export const GAP_MAX_MS = 1_000
/** Where the process goes, and the guardian starts it again. */
export const GAP_OF_PROCESS_MAX_MS = 2_500
/** Until a service serves whose plugin fails while it boots. */
export const START_MAX_MS = 5_000
/** `SHUTDOWN_TIMEOUT_MS`, and what the process takes beside it. */
export const STOP_MAX_MS = 16_000

/** What is wrong however busy the machine is. */
export function wrongsOf({ startMs, blamed, stop, leftBehind }: Cell): string[] {
  return [
    ...(startMs === null ? ['never served'] : []),
    ...(blamed.length > 0 ? [`blamed ${blamed.join(', ')}`] : []),
    ...(stop === null ? ['SIGTERM did not end it'] : []),
    ...(leftBehind > 0 ? [`${leftBehind} children left`] : []),
  ]
}

/** What took too long. */
export function delaysOf({ startMs, gapMs, restarts, stop }: Cell): string[] {
  return [
    ...(startMs !== null && startMs > START_MAX_MS ? [`served after ${startMs} ms`] : []),
    ...(startMs !== null && gapMs > (restarts > 0 ? GAP_OF_PROCESS_MAX_MS : GAP_MAX_MS) ? [`gap ${gapMs} ms`] : []),
    ...(stop !== null && stop.ms > STOP_MAX_MS ? [`SIGTERM took ${stop.ms} ms`] : []),
  ]
}

/** What is bad about a cell; empty when nothing is. */
export const faultsOf = (cell: Cell): string[] => [...wrongsOf(cell), ...delaysOf(cell)]

/** One cell in one line. */
export function lineOf(cell: Cell): string {
  const { place, fault, lanes, mode, isNative, startMs, gapMs, failed, requests, named, restarts, stop } = cell
  const bad = faultsOf(cell)
  const where = `${lanes} lane${lanes > 1 ? 's' : ''}, ${mode}${isNative ? ', native' : ''}`
  const ended = stop === null ? 'killed' : `${stop.code} in ${stop.ms} ms`
  const figures = `up ${startMs} ms, gap ${gapMs} ms, failed ${failed} of ${requests}, restarts ${restarts}, end ${ended}`
  const line = `${place} × ${fault} (${where}): ${figures}; named ${named.join(', ') || 'nobody'}`
  return bad.length > 0 ? `BAD  ${line}  ← ${bad.join('; ')}` : `ok   ${line}`
}
