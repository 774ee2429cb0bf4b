import { type DeliveryPart, type PluginPlace, pluginPlace, type RequestDetail, type WorkPart } from '#heddle'
import { deathsOf, deliveriesOf, worksOf } from './parts.ts'

/** Why a request has failed. */
export interface Why {
  sentence: string
  /** Where in the code of a plugin; null where that is not known. */
  place: PluginPlace | null
}

/**
 * The first of what explains most: the death of a lane, the error of the handler, an event that was given up, an attempt that has failed.
 * @param folders of the domains, absolute
 * @returns null where nothing has failed
 */
export function whyOf(request: RequestDetail, folders: readonly string[]): Why | null {
  const [death] = deathsOf(request)
  if (death !== undefined) {
    const place = death.line === null ? null : pluginPlace([death.line], folders)
    const where = death.handler === null ? '' : ` in ${death.handler}`
    return said(`Lane ${death.lane} died${where}: ${death.message}`, place)
  }
  const works = worksOf(request)
  const handler = works.find(({ kind, error }) => error !== undefined && kind !== 'event')
  if (handler !== undefined) return failed(handler, 'failed', folders)
  for (const { eventId, group, event } of givenUp(request)) {
    const attempts = works.filter((work) => work.eventId === eventId && isOf(work, group))
    const last = attempts.findLast(({ error }) => error !== undefined)
    if (last === undefined) return said(`${group} gave up on ${event}`, null)
    const all = Math.max(...attempts.map(({ attempt }) => attempt ?? 1))
    return failed(last, `failed ${all} of ${all} attempts`, folders)
  }
  const attempt = works.find(({ error }) => error !== undefined)
  if (attempt !== undefined) return failed(attempt, `failed in attempt ${attempt.attempt ?? 1}`, folders)
  if (request.state === 'unfinished') {
    return said(`The process ended before ${request.kind === 'job' ? 'the run did' : 'it was answered'}`, null)
  }
  if (request.status !== null && request.status >= 500) {
    const what = request.plugin === '' ? 'The runtime' : `The runtime, for ${request.plugin},`
    return said(`${what} answered with ${request.status}`, null)
  }
  return null
}

/** Deliveries whose last part, which may be a replay, was given up. */
function givenUp(request: RequestDetail): DeliveryPart[] {
  const last = new Map<string, DeliveryPart>()
  for (const delivery of deliveriesOf(request)) last.set(`${delivery.eventId} ${delivery.group}`, delivery)
  return [...last.values()].filter(({ isGivenUp }) => isGivenUp)
}

/** Without a group of its own, a subscriber's group is its name. */
const isOf = ({ name, kind }: WorkPart, group: string): boolean =>
  kind === 'event' && (name === group || !group.includes('.'))

function failed({ name, error }: WorkPart, how: string, folders: readonly string[]): Why {
  return said(`${name} ${how}: ${error!.message}`, pluginPlace(error!.stack.split('\n'), folders))
}

const said = (sentence: string, place: PluginPlace | null): Why => ({
  sentence: place === null ? sentence : `${sentence} at ${place.file}:${place.line}:${place.column}`,
  place,
})
