/** Puts the parts of a request into one tree of rows, in the order in which things were caused. */

/**
 * @param {object} request as `/system/requests/:id` gives it
 * @returns {{ key: string, depth: number, name: string, note: string, thread: string, kind: string, atMs: number, ms: number | null,
 *   isFailed: boolean, isWaiting: boolean, detail: object }[]} times are milliseconds since the request has begun
 */
export function rowsOf(request) {
  const rows = []
  const works = request.parts.filter(({ type }) => type === 'work')
  const deliveries = merged(request.parts.filter(({ type }) => type === 'delivery'))
  const deaths = request.parts.filter(({ type }) => type === 'death')
  const shownWorks = new Set()
  const shownDeliveries = new Set()
  const at = (ms) => Math.max(0, ms - request.at_ms)
  const add = (row) => {
    rows.push({ key: String(rows.length), note: '', thread: '', isFailed: false, isWaiting: false, detail: {}, ...row })
  }

  function addWork(work, depth) {
    shownWorks.add(work)
    add({
      depth,
      kind: 'work',
      name: work.name,
      note: work.kind === 'event' && work.attempt > 1 ? `attempt ${work.attempt}` : '',
      thread: threadName(work.thread),
      atMs: at(work.atMs),
      ms: work.ms,
      isFailed: work.error !== undefined,
      detail: { work },
    })
    addCalls(work, -1, depth + 1)
    if (work.callsLeftOut !== undefined)
      add({ depth: depth + 1, kind: 'note', name: `${work.callsLeftOut} more calls`, atMs: at(work.atMs), ms: null })
  }

  function addCalls(work, parent, depth) {
    for (const [index, call] of work.calls.entries()) {
      if (call.parent !== parent) continue
      add({
        depth,
        kind: call.tool,
        name: `${call.tool}.${call.method}`,
        note: call.statement ?? call.event ?? call.message ?? '',
        atMs: at(work.atMs) + call.fromMs,
        ms: call.ms,
        isFailed: call.error !== undefined,
        detail: { call, work },
      })
      addCalls(work, index, depth + 1)
      if (call.eventId !== undefined) addEvent(call.eventId, depth + 1)
    }
  }

  function addEvent(eventId, depth) {
    for (const delivery of deliveries.filter((each) => each.eventId === eventId)) {
      shownDeliveries.add(delivery)
      add({
        depth,
        kind: 'delivery',
        name: `process ${delivery.event}`,
        note: delivery.group,
        thread: 'primary',
        atMs: at(delivery.atMs),
        ms: delivery.ms,
        isFailed: delivery.isGivenUp,
        isWaiting: true,
        detail: { delivery },
      })
      for (const work of works)
        if (!shownWorks.has(work) && work.eventId === eventId && work.name === delivery.group) addWork(work, depth + 1)
    }
    for (const work of works) if (!shownWorks.has(work) && work.eventId === eventId) addWork(work, depth)
  }

  const isRequest = request.kind === 'request'
  if (isRequest)
    add({
      depth: 0,
      kind: 'request',
      name: request.method === '' ? request.id : `${request.method} ${request.path}`,
      thread: 'primary',
      atMs: 0,
      ms: request.duration_ms,
      isFailed: request.status >= 500 || request.state === 'unfinished',
    })
  for (const work of works) if (work.eventId === null && !shownWorks.has(work)) addWork(work, isRequest ? 1 : 0)
  for (const death of deaths)
    add({
      depth: 1,
      kind: 'death',
      name: `Lane ${death.lane} died`,
      note: death.message,
      atMs: at(death.atMs),
      ms: null,
      isFailed: true,
      detail: { death },
    })
  // What was published where nothing is kept of it: outside of the sample, or by a lane that died.
  for (const { eventId } of [...works, ...deliveries]) if (eventId !== null) addEventLeft(eventId)
  function addEventLeft(eventId) {
    if (
      works.some((work) => work.eventId === eventId && !shownWorks.has(work)) ||
      deliveries.some((delivery) => delivery.eventId === eventId && !shownDeliveries.has(delivery))
    )
      addEvent(eventId, 1)
  }
  return rows
}

/** A delivery that waited in the log of events for its next attempt, or was replayed, is several parts. */
function merged(parts) {
  const byKey = new Map()
  for (const part of parts) {
    const key = `${part.eventId} ${part.group}`
    const known = byKey.get(key)
    if (known === undefined) byKey.set(key, { ...part })
    else {
      known.ms = part.atMs + part.ms - known.atMs
      known.isGivenUp = part.isGivenUp
      known.steps = [...known.steps, ...part.steps]
    }
  }
  return [...byKey.values()]
}

const threadName = (thread) => (thread === 'primary' ? 'primary' : `lane ${thread}`)

/** What the log of a request says, oldest first. */
export function logsOf({ parts }) {
  return parts
    .filter(({ type }) => type === 'work')
    .flatMap((work) =>
      work.calls
        .filter(({ tool }) => tool === 'logger')
        .map(({ method, message, fields, fromMs }) => ({
          level: method,
          message,
          fields,
          from: work.name,
          atMs: work.atMs + fromMs,
        })),
    )
    .sort((a, b) => a.atMs - b.atMs)
}
