/** Puts the parts of a request into one tree of rows, in the order in which things were caused. */

/**
 * @param {import('#heddle').RequestDetail} request as `/system/requests/:id` gives it
 * @returns {{ key: string, depth: number, name: string, note: string, thread: string, kind: string, atMs: number, ms: number | null,
 *   isFailed: boolean, waits: { atMs: number, ms: number }[], detail: object }[]} times are milliseconds since the request has begun;
 *   `waits` are drawn as waiting; a `key` stays that of its row while more parts come
 */
export function rowsOf(request) {
  const rows = []
  const works = request.parts.filter((part) => part.type === 'work')
  const deliveries = merged(request.parts.filter((part) => part.type === 'delivery'))
  const deaths = request.parts.filter((part) => part.type === 'death')
  const isOfSeveral = request.parts.some(({ replica }) => replica !== undefined)
  const shownWorks = new Set()
  const shownDeliveries = new Set()
  const at = (ms) => Math.max(0, ms - request.at_ms)
  const add = (row) => {
    rows.push({ note: '', thread: '', isFailed: false, waits: [], detail: {}, ...row })
  }
  const placeOf = ({ thread, replica = undefined }) =>
    isOfSeveral ? `${replica ?? request.replica} ${threadName(thread)}` : threadName(thread)

  function addWork(work, depth, before = null) {
    shownWorks.add(work)
    const key = keyOf('w', work)
    add({
      key,
      depth,
      kind: 'work',
      name: work.name,
      note: work.kind === 'event' && work.attempt > 1 ? `attempt ${work.attempt}` : '',
      thread: placeOf(work),
      atMs: at(work.atMs),
      ms: work.ms,
      isFailed: work.error !== undefined,
      waits: before === null ? [] : between(before, work, at),
      detail: { work },
    })
    addCalls(work, key, -1, depth + 1)
    if (work.callsLeftOut !== undefined)
      add({
        key: `${key}.more`,
        depth: depth + 1,
        kind: 'note',
        name: `${work.callsLeftOut} more calls`,
        atMs: at(work.atMs),
        ms: null,
      })
  }

  function addCalls(work, workKey, parent, depth) {
    for (const [index, call] of work.calls.entries()) {
      if (call.parent !== parent) continue
      add({
        key: `${workKey}.${index}`,
        depth,
        kind: call.tool,
        name: `${call.tool}.${call.method}`,
        note: call.statement ?? call.event ?? call.message ?? '',
        thread: placeOf(work),
        atMs: at(work.atMs) + call.fromMs,
        ms: call.ms,
        isFailed: call.error !== undefined,
        detail: { call, work },
      })
      addCalls(work, workKey, index, depth + 1)
      if (call.eventId !== undefined) addEvent(call.eventId, depth + 1)
    }
  }

  function addEvent(eventId, depth) {
    for (const delivery of deliveries.filter((each) => each.eventId === eventId && !shownDeliveries.has(each))) {
      shownDeliveries.add(delivery)
      const attempts = works.filter(
        (work) => !shownWorks.has(work) && work.eventId === eventId && work.name === delivery.group,
      )
      add({
        key: keyOf('d', delivery),
        depth,
        kind: 'delivery',
        name: `process ${delivery.event}`,
        note: delivery.group,
        thread: placeOf({ thread: 'primary', replica: delivery.replica }),
        atMs: at(delivery.atMs),
        ms: delivery.ms,
        isFailed: delivery.isGivenUp,
        waits: attempts.slice(1).flatMap((work, n) => between(attempts[n], work, at)),
        detail: { delivery },
      })
      addAttempts(attempts, depth + 1)
    }
    const others = works.filter((work) => !shownWorks.has(work) && work.eventId === eventId)
    for (const attempts of Map.groupBy(others, ({ name }) => name).values()) addAttempts(attempts, depth)
  }

  function addAttempts(attempts, depth) {
    for (const [n, work] of attempts.entries()) addWork(work, depth, n === 0 ? null : attempts[n - 1])
  }

  const isRequest = request.kind === 'request'
  if (isRequest)
    add({
      key: 'request',
      depth: 0,
      kind: 'request',
      name: request.method === '' ? request.id : `${request.method} ${request.path}`,
      thread: placeOf({ thread: 'primary' }),
      atMs: 0,
      ms: request.duration_ms,
      isFailed: request.status >= 500 || request.state === 'unfinished',
      detail: { request },
    })
  for (const work of works) if (work.eventId === null && !shownWorks.has(work)) addWork(work, isRequest ? 1 : 0)
  for (const death of deaths)
    add({
      key: keyOf('x', death),
      depth: 1,
      kind: 'death',
      name: `Lane ${death.lane} died`,
      note: death.message,
      thread: placeOf({ thread: death.lane, replica: death.replica }),
      atMs: at(death.atMs),
      ms: null,
      isFailed: true,
      detail: { death },
    })
  // What was published where nothing is kept of it: outside of the sample, or by a lane that died.
  for (const part of [...works, ...deliveries])
    if (part.eventId !== null && !shownWorks.has(part) && !shownDeliveries.has(part)) addEvent(part.eventId, 1)
  return rows
}

/** Parts of one kind have begun at different microseconds. */
const keyOf = (kind, { atMs }) => kind + Math.round(atMs * 1000).toString(36)

/** The wait from the end of one attempt to the begin of the next. */
function between(before, work, at) {
  const fromMs = at(before.atMs) + before.ms
  return [{ atMs: fromMs, ms: Math.max(0, at(work.atMs) - fromMs) }]
}

/** A delivery that waited in the log of events for its next attempt, or was replayed, is several parts. */
function merged(parts) {
  return [...Map.groupBy(parts, ({ eventId, group }) => `${eventId} ${group}`).values()].map((all) => {
    const [first, last] = [all[0], all.at(-1)]
    const ms = first === last ? first.ms : last.atMs + last.ms - first.atMs
    return { ...first, ms, isGivenUp: last.isGivenUp, steps: all.flatMap(({ steps }) => steps) }
  })
}

const threadName = (thread) => (thread === 'primary' ? 'primary' : `lane ${thread}`)

/** What the log of a request says, oldest first. @param only the one piece of work whose log is wanted */
export function logsOf({ parts }, only = undefined) {
  return parts
    .filter((part) => part.type === 'work' && (only === undefined || part === only))
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
