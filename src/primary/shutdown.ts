// Stops the parts of the primary in their order, and says what it waited for.
import type { WorkInFlight } from '../contracts/registry.ts'
import { steadyMs } from '../core/schedule/clock.ts'
import { Progress } from '../core/schedule/progress.ts'
import { until, withTimeout } from '../core/schedule/waiting.ts'
import { longAnswers } from './http/sent-body.ts'
import type { Parts } from './parts.ts'

/** Work that is named in one line at most. */
const NAMED_MAX = 10

/**
 * Says who keeps a process that drains, where that takes long.
 * @param deadlineMs until when it waits, by `steadyMs`
 * @returns called when nothing is waited for any more: says what becomes of what has not ended
 */
function reportDrain(parts: Parts, fateOfEvents: string, deadlineMs: number): () => void {
  const { log, events } = parts
  const named = (works: readonly WorkInFlight[]): string | null => namesOf(works, events.hub.queued, unreadOf(parts))
  const timer = setTimeout(() => {
    const leftMs = deadlineMs - steadyMs()
    const names = named(worksOf(parts))
    if (names !== null && leftMs > 0) log('INFO', `Draining waits for ${names}: ${seconds(leftMs)} at most`, 'main')
  }, SAYS_AFTER_MS)
  return () => {
    clearTimeout(timer)
    const works = worksOf(parts)
    const names = named(works)
    if (names === null) return
    const kinds = new Set(works.map(({ kind }) => kind))
    const fates = [
      ...(kinds.has('event') || events.hub.queued > 0 ? [fateOfEvents] : []),
      ...(kinds.has('request') ? ['requests are answered with 500'] : []),
      ...(unreadOf(parts) > 0 ? ['answers break off'] : []),
      ...(kinds.has('job') ? ['jobs run again when they are due next, those of a date at the next start'] : []),
    ]
    log('WARNING', `Draining waits no longer for ${names}: ${fates.join('; ')}`, 'main')
  }
}

/** Requests, events and jobs that run, those first that have run longest. */
function worksOf({ lanes, registrar, localWorker }: Parts): WorkInFlight[] {
  const ofLanes = lanes.all.flatMap((lane) => [...lane.requests.works(), ...registrar.workInFlight(lane)])
  return [...ofLanes, ...localWorker.works()].sort((a, b) => b.for_ms - a.for_ms)
}

/** Answers that are on their way to clients who read them slowly: files, and long ones. */
function unreadOf({ lanes }: Parts): number {
  return lanes.all.reduce((sum, { requests }) => sum + requests.files, longAnswers.open)
}

/** Null when there is nothing. @param queued events that wait for a thread */
function namesOf(works: readonly WorkInFlight[], queued: number, unread: number): string | null {
  const names = works.slice(0, NAMED_MAX).map(({ kind, name, plugin, for_ms }) => {
    const what = kind === 'request' ? name : `${kind} ${name}`
    return `${what} (${plugin}, for ${seconds(for_ms)})`
  })
  if (works.length > NAMED_MAX) names.push(`${works.length - NAMED_MAX} more`)
  if (queued > 0) names.push(`${queued} events that wait for a thread`)
  if (unread > 0) names.push(`${unread} answers that their clients have not read`)
  return names.length === 0 ? null : names.join(', ')
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** Close code and reason of WebSockets (RFC 6455, section 7.4.1). */
const GOING_AWAY = [1001, 'the service is shutting down'] as const
/** A drain serves what still comes on open connections for this long at most, milliseconds. */
const LINGER_MAX_MS = 3000
/** It waits this long for messages of WebSockets that are being handled, milliseconds. */
const SOCKET_GRACE_MS = 2000

/** To close everything, work has to end so long before the time is up, milliseconds: a fifth of a short time. */
const CLOSING_MAX_MS = 1500
const CLOSING_SHARE = 0.2
/** Handlers that still run get their signal so long before that, milliseconds: a fifth of a short time. */
const HURRY_MAX_MS = 500
/** What is left for the rest when the lanes have ended, milliseconds. */
const CLOSING_LAST_MS = 500
/** Each part has this long to close, even when the time is up, milliseconds. */
const CLOSING_LEAST_MS = 250
/** A drain that takes longer says what it waits for, milliseconds. */
const SAYS_AFTER_MS = 1000

/**
 * Drains: no new work, everything accepted is finished, then all threads end. Bounded by `shutdownTimeoutMs`.
 * @param fateOfEvents what becomes of an event that is not handled in time
 */
export async function shutDown(parts: Parts, shutdownTimeoutMs: number, fateOfEvents: string): Promise<void> {
  const progress = new Progress('Stopping', (message) => parts.log('INFO', message, 'main'))
  try {
    await stopInOrder(parts, shutdownTimeoutMs, fateOfEvents, progress)
  } finally {
    progress.end()
  }
}

async function stopInOrder(
  parts: Parts,
  shutdownTimeoutMs: number,
  fateOfEvents: string,
  progress: Progress,
): Promise<void> {
  const { events, jobs, lanes, supervisor, recorders, kernel, toolBooter } = parts
  const { listener, localWorker, dispatcher } = parts
  const { hub } = events
  const endMs = steadyMs() + shutdownTimeoutMs
  const deadlineMs = endMs - Math.min(CLOSING_MAX_MS, shutdownTimeoutMs * CLOSING_SHARE)
  const hurryMs = deadlineMs - Math.min(HURRY_MAX_MS, shutdownTimeoutMs * CLOSING_SHARE)
  const reportEnd = reportDrain(parts, fateOfEvents, deadlineMs)
  toolBooter.stop()
  events.durable.followed.stop()
  events.queues.close()
  recorders.tracing?.hurry()
  progress.step = () => namesOf(worksOf(parts), hub.queued, unreadOf(parts)) ?? 'clients to close their connections'
  await listener.drain(Math.min(LINGER_MAX_MS, shutdownTimeoutMs * 0.3))
  const sockets = [...lanes.all.map((lane) => lane.sockets), localWorker.sockets]
  // Messages that are being handled are finished first.
  for (const each of sockets) each.closeWhenIdle(...GOING_AWAY)
  localWorker.server.closeStreams()
  const requestsInFlight = (): number =>
    lanes.all.reduce((sum, lane) => sum + lane.requestsInFlight, unreadOf(parts)) +
    dispatcher.waiting +
    localWorker.inFlight
  // Streams of the lanes end with the lanes; all other requests are waited for, those that take long beside what comes next.
  await until(() => requestsInFlight() === 0, Math.min(deadlineMs, steadyMs() + shutdownTimeoutMs * 0.6))
  const areSocketsClosed = (): boolean =>
    localWorker.server.sockets.size === 0 && sockets.every(({ size }) => size === 0)
  await until(areSocketsClosed, Math.min(deadlineMs, steadyMs() + SOCKET_GRACE_MS))
  for (const each of sockets) each.closeAll(...GOING_AWAY)
  // Jobs that run take as long as they may, and no event begins meanwhile that somebody else has, too.
  let areJobsOver = false
  void jobs.stop().finally(() => {
    areJobsOver = true
  })
  const readingStopped = events.streams?.stopReading(deadlineMs - 500)
  events.durable.end()
  hub.returnDelayed()
  await readingStopped
  const isDone = (): boolean =>
    areJobsOver && hub.pending === 0 && (events.streams?.open ?? 0) === 0 && requestsInFlight() === 0
  await until(isDone, hurryMs)
  // What still runs gets its signal.
  hub.stopping()
  jobs.lose('stopped')
  await until(isDone, deadlineMs)
  reportEnd()
  if (hub.unstored > 0)
    parts.log('WARNING', `${hub.unstored} event deliveries were not finished and are lost with this process`, 'main')
  listener.refuse()
  dispatcher.setLanes([])
  /** All parts have what is left of the time, and each has a little. */
  const close = async (step: string, closing: (withinMs: number) => Promise<unknown> | undefined): Promise<void> => {
    progress.step = step
    const withinMs = Math.max(CLOSING_LEAST_MS, endMs - steadyMs())
    const isLate = await withTimeout(
      Promise.resolve(closing(withinMs)).then(() => false),
      withinMs,
      true,
    )
    if (isLate) parts.log('WARNING', `Stopping waits no longer for ${step}`, 'main')
  }
  progress.step = 'the event store to close'
  await events.durable.close(Math.max(steadyMs() + 500, deadlineMs))
  progress.step = () => `${supervisor.threadsNow} (onStop, and native calls)`
  await supervisor.stop(Math.max(500, endMs - CLOSING_LAST_MS - steadyMs()))
  await close('the event store to be handed over', () => events.durable.leave())
  await close('onStop of the primary, and its tools', () => kernel.stop())
  await close('the event streams', () => events.streams?.close())
  hub.close()
  await close('the records of events', () => hub.records.close())
  listener.close()
  // Last, so that the spans of everything else have ended.
  await close('the history', (withinMs) => recorders.history?.stop(withinMs))
  await close('traces', (withinMs) => recorders.tracing?.stop(withinMs))
}
