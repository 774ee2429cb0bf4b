/** Compares what clients were promised with what is there. */
import type { EventRecord } from '../../src/contracts/event-bus.ts'
import { type Asked, isAcknowledged } from './orders.ts'

/** A row of `placed`. */
export interface PlacedRow {
  number: number
  key: string
  event_id: string
}

/** A row of `handled`, in the order in which they were written. */
export interface HandledRow {
  event_id: string
  event: string
  number: number
  key: string
  parent_id: string | null
  request_id: string | null
  child_id: string | null
}

/** What is left when everything has settled. */
export interface Evidence {
  asked: readonly Asked[]
  placed: readonly PlacedRow[]
  handled: readonly HandledRow[]
  /** Ids of the events whose transactional subscriber has had its effect, once for each time. */
  billed: readonly string[]
  /** Ids of events that are in the log still. */
  left: readonly string[]
  /** Dead letters that are there in the end. Nothing fails often enough for one but bad checks, and those are edited or deleted. */
  letters: readonly { id: string; error: string }[]
  /** Events whose dead letters were deleted. */
  deleted: readonly string[]
  /** Rows that were written in transactions whose lane died before they ended. */
  torn: readonly string[]
  /** What the stream of traces has told, by event; null where the process is killed, and the stream with it. */
  records: ReadonlyMap<string, EventRecord> | null
}

export const FAULTS = [
  'rows without event',
  'events without row',
  'acknowledged requests without row',
  'events never handled',
  'events that became dead letters',
  'transactional effects not exactly 1',
  'broken trees',
  'keyed order broken',
  'rows of transactions that never ended',
] as const
export type FaultName = (typeof FAULTS)[number]

export interface Verdict {
  /** What is wrong, by its kind; all are there, most of them empty. */
  readonly faults: Readonly<Record<FaultName, readonly string[]>>
  readonly acknowledged: number
  readonly rows: number
  readonly events: number
  /** Events without a parent, each with all that it has caused. */
  readonly trees: number
  /** Deliveries beyond the first of their events. */
  readonly repeats: number
  /** Events that were in flight at three deaths: dead letters, as the rule wants it, whoever was to blame. */
  readonly setAside: number
}

const THREE_DEATHS = /\bdied 3 times\b/
/** The child of an event that has become a dead letter. */
const FAILED = 'event.delivery.failed'

const CHILD_OF: Readonly<Record<string, string>> = {
  'order.placed': 'order.confirmed',
  'order.confirmed': 'order.shipped',
}
const PARENT_OF: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(CHILD_OF).map(([parent, child]) => [child, parent]),
)

/** Compares what was asked, what is stored and what was handled. */
export function judge(evidence: Evidence): Verdict {
  const { asked, placed, handled, billed, left, letters, deleted, torn, records } = evidence
  const faults = Object.fromEntries(FAULTS.map((name) => [name, [] as string[]])) as Record<FaultName, string[]>
  const acknowledged = asked.filter(isAcknowledged)
  const rows = new Map(placed.map((row) => [row.event_id, row]))
  const handledOf = new Map<string, HandledRow>()
  for (const row of handled) if (!handledOf.has(row.event_id)) handledOf.set(row.event_id, row)

  const dead = new Set(letters.map(({ id }) => id))
  const traces = new Set([...handledOf.keys(), ...left, ...dead])
  for (const { event_id, number } of placed)
    if (!traces.has(event_id)) faults['rows without event'].push(`order ${number}: ${event_id}`)
  for (const { event_id, event, number } of handledOf.values())
    if (event === 'order.placed' && !rows.has(event_id))
      faults['events without row'].push(`${event_id} of order ${number}`)
  for (const { kind, eventId, requestId } of acknowledged)
    if (kind === 'order' && !rows.has(eventId))
      faults['acknowledged requests without row'].push(`${requestId}: ${eventId}`)

  const children = handled.flatMap(({ child_id }) => child_id ?? [])
  const published = new Set([...rows.keys(), ...acknowledged.map(({ eventId }) => eventId), ...children, ...left])
  for (const id of published)
    if (!handledOf.has(id) && !dead.has(id) && !deleted.includes(id) && !rows.has(id))
      faults['events never handled'].push(id)
  for (const id of left) if (!faults['events never handled'].includes(id)) faults['events never handled'].push(id)
  const others = letters.filter(({ error }) => !THREE_DEATHS.test(error))
  faults['events that became dead letters'].push(...others.map(({ id, error }) => `${id}: ${error}`))

  const effects = new Map<string, number>()
  for (const id of billed) effects.set(id, (effects.get(id) ?? 0) + 1)
  for (const id of new Set([...rows.keys(), ...effects.keys()])) {
    const times = rows.has(id) ? (effects.get(id) ?? 0) : 'without an order'
    if (times !== 1) faults['transactional effects not exactly 1'].push(`${id}: ${times}`)
  }

  for (const row of handledOf.values()) {
    const problem = treeProblem(row, handledOf, published) ?? traceProblem(row, records)
    if (problem !== null) faults['broken trees'].push(`${row.event} ${row.event_id}: ${problem}`)
  }
  const failures = new Set<string | null>()
  for (const { event, parent_id } of records?.values() ?? []) if (event === FAILED) failures.add(parent_id)
  for (const { id } of records === null ? [] : letters)
    if (!failures.has(id)) faults['broken trees'].push(`${id}: the traces lack ${FAILED}`)
  faults['keyed order broken'].push(...orderProblems(handled, acknowledged))
  faults['rows of transactions that never ended'].push(...torn)
  return {
    faults,
    acknowledged: acknowledged.length,
    rows: placed.length,
    events: new Set([...published, ...handledOf.keys()]).size,
    trees: [...handledOf.values()].filter(({ parent_id }) => parent_id === null).length,
    repeats: handled.length - handledOf.size,
    setAside: letters.length - others.length,
  }
}

function treeProblem(
  row: HandledRow,
  handledOf: ReadonlyMap<string, HandledRow>,
  published: ReadonlySet<string>,
): string | null {
  const { event, parent_id: parent, request_id: request, key, number } = row
  if (request !== `kill-${key}-${number}`) return `its request is ${request}`
  const wanted = PARENT_OF[event]
  if (wanted === undefined) return parent === null ? null : `a root has the parent ${parent}`
  if (parent === null) return 'it has no parent'
  if (!published.has(parent)) return `nobody has published its parent ${parent}`
  const parentRow = handledOf.get(parent)
  // A parent whose handler has published it and died is handled again.
  if (parentRow === undefined) return `its parent ${parent} was not handled`
  return parentRow.event === wanted && parentRow.number === number
    ? null
    : `its parent is ${parentRow.event} of another order`
}

/** Operators see the tree that subscribers saw. */
function traceProblem({ event_id, parent_id, request_id }: HandledRow, records: Evidence['records']): string | null {
  const record = records?.get(event_id)
  if (record === undefined) return records === null ? null : 'the traces lack it'
  return record.parent_id === parent_id && record.request_id === request_id
    ? null
    : `the traces have the parent ${record.parent_id} and the request ${record.request_id}`
}

/**
 * Of each event name and key the first deliveries are in the order of the numbers. Repeats come as they come, and so does what nobody has
 * acknowledged: a handler whose client has been told 504 may commit behind the client's next order.
 */
function orderProblems(handled: readonly HandledRow[], acknowledged: readonly Asked[]): string[] {
  const problems: string[] = []
  const highest = new Map<string, number>()
  const ordered = new Set(acknowledged.map(({ number }) => number))
  const seen = new Set<string>()
  for (const { event, event_id, key, number } of handled) {
    if (event === 'note.taken' || !ordered.has(number) || seen.has(`${event} ${number}`)) continue
    seen.add(`${event} ${number}`)
    const last = highest.get(`${event} ${key}`) ?? 0
    if (number < last) problems.push(`${event} ${number} of ${key} came after ${last}: ${event_id}`)
    else highest.set(`${event} ${key}`, number)
  }
  return problems
}
