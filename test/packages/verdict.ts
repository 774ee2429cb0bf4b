import { GAP_OF_PROCESS_MAX_MS as GAP_MAX_MS, STOP_MAX_MS } from '../matrix/verdict.ts'
import { KINDS } from './holdings.ts'
import type { Outcome } from './trial.ts'

/** What is bad about a trial; empty when the package works. */
export function wrongsOf({
  said,
  restarts,
  failures,
  gapMs,
  blamed,
  before,
  after,
  grew,
  left,
  stop,
}: Outcome): string[] {
  return [
    ...(said === null ? [] : [said]),
    ...(restarts > 0 ? [`the process was another one ${restarts} times`] : []),
    ...Object.entries(failures).map(([status, count]) => `${count} requests to the innocent route failed: ${status}`),
    ...(gapMs > GAP_MAX_MS ? [`the innocent route had no answer for ${gapMs} ms`] : []),
    ...(blamed.length > 0 ? [`blamed ${blamed.join(', ')}`] : []),
    ...KINDS.flatMap((kind) => (grew[kind] === undefined ? [] : [`leaves ${kind}: ${grew[kind]} in each round`])),
    ...(after !== null && after.threads > before!.threads ? [`${after.threads - before!.threads} threads left`] : []),
    ...(left.children > 0 ? [`${left.children} processes left`] : []),
    ...(left.files.length > 0 ? [`${left.files.length} temporary files left, as ${left.files[0]}`] : []),
    ...(stop === null ? ['SIGTERM did not end it'] : []),
    ...(stop !== null && (stop.code !== 0 || stop.ms > STOP_MAX_MS)
      ? [`ended with ${stop.code} in ${stop.ms} ms`]
      : []),
  ]
}
