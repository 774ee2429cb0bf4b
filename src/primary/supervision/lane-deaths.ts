import { relative, resolve, sep } from 'node:path'
import type { Awaitable } from '../../contracts/awaitable.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { NO_CAUSE } from '../../core/causality/context.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { encodePayload } from '../../runtime/events/payload.ts'
import { publicationOf } from '../../runtime/events/publication.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Lane, UnfinishedWork } from '../dispatch/lane.ts'
import type { Routing } from '../http/routing.ts'
import { blackBoxOf } from './black-box.ts'
import { isProved, type Judge } from './judge.ts'
import type { LaneDeath } from './lane-death.ts'
import { originOf } from './lane-handlers.ts'
import type { LaneRegistrar } from './lane-registrar.ts'
import { shownFrame } from './stack-probe.ts'
import type { Standstill } from './watchdog.ts'

/** The event that reports a lane's death. Its payload is the black box. */
export const LANE_DIED = 'runtime.lane.died'
const IDENTITY = 'supervisor'
/** A line where a lane stood still counts for its death so long, milliseconds. */
const RECENT_MS = 5000
/** Steps that the log and the event show; `/system/lanes` shows all. */
const STEPS_REPORTED = 10

export interface DeathParts {
  readonly domainsDir: readonly string[]
  readonly routing: Routing
  readonly registrar: LaneRegistrar
  readonly judge: Judge
  callName(number: number): string
  /** Publishes an event of the runtime; its payload is JSON text. */
  publish(event: EventFrame): Awaitable<void>
  /** Keeps it. */
  /** @param keys of the requests in flight whose ids their clients have chosen, by these */
  record(box: BlackBox, keys: ReadonlyMap<string, string>): void
  /** Tells the tools that a thread is gone: they may hold something for it. */
  threadGone(threadId: number): void
  log(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
}

const answerOf = ({ reason }: BlackBox): ErrorCode => (reason === 'stalled' ? 'HTTP_LANE_STALLED' : 'HTTP_INTERNAL')

/** Handles the death of a lane: answers its requests, reads and reports its black box, and gives its events to other lanes. */
export class LaneDeaths {
  readonly #parts: DeathParts
  readonly #domains: string[]
  /** Where each lane has stood still last: a heap that is nearly full does so, while it is collected. */
  readonly #stills = new WeakMap<Lane, { atMs: number; where: string }>()

  constructor(parts: DeathParts) {
    this.#parts = parts
    this.#domains = parts.domainsDir.map((directory) => resolve(directory) + sep)
  }

  /** A lane has died, or is dying: who is guilty of it is known, and gets his answers. Everybody else may still get theirs. */
  onDeath(lane: Lane, death: LaneDeath): BlackBox {
    const { judge } = this.#parts
    const box = judge.name(lane, this.#read(lane, death))
    this.#report(box)
    this.#parts.record(box, new Map(death.requests.map(({ exchange: { requestId, key } }) => [requestId, key])))
    // Who ends lanes by its boot is left out of those that start: it needs no other punishment.
    if (death.bootCulprit === null) judge.punish(lane, box)
    else judge.died(lane)
    if (isProved(box)) lane.failRequestsOf(box.guilty!.plugin!, answerOf(box))
    return box
  }

  /** It is gone, with what it has not finished. */
  onGone(lane: Lane, { requests, unreadDeliveries }: UnfinishedWork, box: BlackBox): void {
    for (const { exchange } of requests) exchange.fail(answerOf(box))
    this.#parts.threadGone(lane.heartbeat.threadId)
    this.#parts.registrar.laneGone(lane, unreadDeliveries, box)
  }

  /** A lane that stood still has gone on by itself. Nothing is lost, but the log says where it stood. */
  onRecovered(lane: Lane, { stillMs, stack }: Standstill): void {
    const line = stack?.find(({ file }) => this.#isDomainFile(file))
    if (line === undefined) return
    const where = `${relative(process.cwd(), line.file)}:${line.line}:${line.column}`
    this.#stills.set(lane, { atMs: steadyMs(), where })
    this.#parts.log('WARNING', `Lane ${lane.index} stood still for ${Math.round(stillMs)} ms (${where})`, IDENTITY, {
      lane: lane.index,
      still_ms: Math.round(stillMs),
      stack: stack!.map(shownFrame).join('\n'),
    })
  }

  #read(lane: Lane, death: LaneDeath): BlackBox {
    const { routing, registrar, callName } = this.#parts
    const { manifest } = lane
    return blackBoxOf(lane, death, {
      routeName: (number) => routing.nameOf(number),
      callName,
      subscriberName: (subscriberIndex) =>
        manifest?.subscriptions.find((each) => each.subscriberIndex === subscriberIndex)?.identity ?? 'subscriber',
      jobName: (job) => manifest?.jobs[job]?.name ?? 'job',
      originOf: (step) => originOf(step, lane, routing),
      recentLine: this.#recentLine(lane),
      works: registrar.workInFlight(lane, death.unreadDeliveries),
      isDomainFile: (file) => this.#isDomainFile(file),
    })
  }

  #recentLine(lane: Lane): string | null {
    const still = this.#stills.get(lane)
    return still !== undefined && steadyMs() - still.atMs < RECENT_MS ? still.where : null
  }

  #isDomainFile(file: string): boolean {
    return this.#domains.some((directory) => file.startsWith(directory)) && !file.includes('node_modules')
  }

  #report(box: BlackBox): void {
    const { guilty } = box
    const who = [guilty?.handler, guilty?.plugin].find((name) => name != null)
    const where = [who, guilty?.line].filter((part) => part != null).join(' at ')
    const short = { ...box, steps: box.steps.slice(-STEPS_REPORTED) }
    const { at: _, stack, ...fields } = short
    this.#parts.log('ERROR', `Lane ${box.lane} died: ${box.message}${where === '' ? '' : ` in ${where}`}`, IDENTITY, {
      ...fields,
      stack: stack.join('\n'),
    })
    const unpublished = (error: unknown): void =>
      this.#parts.log('WARNING', `${LANE_DIED} was not published: ${messageOf(error)}`, IDENTITY)
    try {
      const { json, keys } = encodePayload(LANE_DIED, short as unknown as Record<string, unknown>)
      this.#parts.publish(publicationOf(IDENTITY, LANE_DIED, json, keys, {}, NO_CAUSE))?.catch(unpublished)
    } catch (error) {
      unpublished(error)
    }
  }
}
