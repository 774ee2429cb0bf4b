import type { RequestDetail, WorkPart } from '#heddle'
import { deathsOf, deliveriesOf, worksOf } from './parts.ts'

/** What a request did, in a form that is small enough for one row of a list. */
export interface Outline {
  /** Until the last of what it has caused has ended. */
  total_ms: number
  /** Handlers, attempts and calls. */
  spans: number
  /** In the order in which they are drawn, one above the other. */
  segments: Segment[]
}

interface Segment {
  kind: 'request' | 'wait' | 'work' | 'store' | 'event' | 'call' | 'failed'
  from_ms: number
  ms: number
}

/** Segments of one outline: the longest, and all that failed. */
const SEGMENTS_MAX = 16
const STORES: readonly string[] = ['db', 'state']
const LAYERS: readonly Segment['kind'][] = ['request', 'wait', 'work', 'call', 'event', 'store', 'failed']

/** Sums up a request. */
export function outlineOf(request: RequestDetail): Outline {
  const { at_ms: atMs, duration_ms: durationMs, status, kind } = request
  const works = worksOf(request)
  const calls = works.flatMap((work) => work.calls.map((call) => segmentOf(call, work, atMs)))
  const segments: Segment[] = [
    ...deliveriesOf(request)
      .filter(({ steps }) => steps.length > 0)
      .map((part): Segment => ({ kind: 'wait', from_ms: part.atMs - atMs, ms: part.ms })),
    ...works.map(
      (work): Segment => ({
        kind: work.error === undefined ? 'work' : 'failed',
        from_ms: work.atMs - atMs,
        ms: work.ms,
      }),
    ),
    ...calls,
    ...deathsOf(request).map((part): Segment => ({ kind: 'failed', from_ms: part.atMs - atMs, ms: 0 })),
  ]
  if (kind === 'request' && durationMs !== null)
    segments.push({ kind: status !== null && status >= 500 ? 'failed' : 'request', from_ms: 0, ms: durationMs })
  const totalMs = Math.max(0, ...segments.map(({ from_ms: fromMs, ms }) => fromMs + ms))
  return { total_ms: totalMs, spans: works.length + calls.length, segments: drawn(segments) }
}

function segmentOf({ tool, fromMs, ms, error }: WorkPart['calls'][number], work: WorkPart, atMs: number): Segment {
  const kind = STORES.includes(tool) ? 'store' : tool === 'event_bus' ? 'event' : 'call'
  return { kind: error === undefined ? kind : 'failed', from_ms: work.atMs - atMs + fromMs, ms: ms ?? 0 }
}

/** The longest ones, the long ones below the short ones. */
function drawn(segments: readonly Segment[]): Segment[] {
  return [...segments]
    .sort((a, b) => Number(b.kind === 'failed') - Number(a.kind === 'failed') || b.ms - a.ms)
    .slice(0, SEGMENTS_MAX)
    .sort((a, b) => LAYERS.indexOf(a.kind) - LAYERS.indexOf(b.kind) || b.ms - a.ms)
    .map(({ kind, from_ms, ms }) => ({ kind, from_ms: round(Math.max(0, from_ms)), ms: round(ms) }))
}

const round = (ms: number): number => Math.round(ms * 1000) / 1000
