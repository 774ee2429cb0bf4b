import { z } from 'zod'
import { type Data, type DeadLetter, HeddleError, type HttpContext, HttpError, Plugin, type Tools } from '#heddle'
import { isProduction } from '../configuration.ts'
import { type OperatorAct, tellOperatorAct } from '../operator-acts.ts'

/** What the bus checks itself is told here for the documents alone. */
const CHOICE = z.looseObject({
  event: z.unknown().optional(),
  subscriber: z.unknown().optional(),
  error: z.unknown().optional().meta({ description: 'A part of it.' }),
  since: z.unknown().optional(),
  until: z.unknown().optional(),
  limit: z.unknown().optional(),
  ids: z.unknown().optional().meta({ description: 'A list of ids, or one.' }),
})
const EDIT = z.looseObject({ payload: z.unknown().optional().meta({ description: 'What the replay delivers.' }) })

/** Lists the deliveries that failed for good, delivers them again to their subscribers, edits their payloads, or deletes them. */
export default class ManageDeadLetters extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus
  #log

  readonly #isProduction

  constructor({ http, event_bus, logger, config }: Tools) {
    super()
    this.#isProduction = isProduction(config)
    this.#http = http
    this.#bus = event_bus
    this.#log = logger
  }

  override onBoot() {
    const tags = ['system']
    this.#http.addEndpoint('/system/dead-letters', 'GET', this.list, {
      tags,
      summary: 'Deliveries that failed for good',
      description:
        'Oldest first: the newest `limit` (1000), or those before the letter `before`. Filters: `event`, `subscriber`, `error` (a part of it), `since`, `until`; `parked=true`: the keys that are held up, each with how many events wait and since when; `replayed=true`: those that were replayed, with the outcome.',
    })
    this.#http.addEndpoint('/system/dead-letters/replay', 'POST', this.replayMany, {
      tags,
      body: CHOICE,
      // A filter in the address that nobody reads would replay all of them.
      query: CHOICE,
      summary: 'Delivers dead letters once more',
      description:
        'The oldest `limit` (1000) for which all that is given holds: `event`, `subscriber`, `error`, `since`, `until`, `ids`.',
    })
    this.#http.addEndpoint('/system/dead-letters/preview', 'GET', this.preview, {
      tags,
      query: CHOICE,
      summary: 'What a replay of dead letters would do',
      description: 'How many would go to each subscriber, with the same filter as `POST /system/dead-letters/replay`.',
    })
    this.#http.addEndpoint('/system/dead-letters/:id/payload', 'GET', this.payload, {
      tags,
      throws: { 403: 'Payloads are for whoever may change them: with `SYSTEM_TOKEN`, or outside of production' },
      summary: 'The payload of a dead letter',
      description: 'What its replay delivers. For the write token, and for everybody outside of production.',
    })
    this.#http.addEndpoint('/system/dead-letters/:id', 'PUT', this.edit, {
      tags,
      body: EDIT,
      summary: 'Gives a dead letter another `payload`',
      description: 'The replay delivers it. The original is kept. A dead letter in Redis cannot be edited.',
    })
    this.#http.addEndpoint('/system/dead-letters/:id/replay', 'POST', this.replay, {
      tags,
      summary: 'Delivers a dead letter once more',
      description: 'To its subscriber alone.',
    })
    this.#http.addEndpoint('/system/dead-letters/:id', 'DELETE', this.delete, {
      tags,
      summary: 'Deletes a dead letter',
      description: 'It is not delivered any more, and cannot be had back.',
    })
  }

  /** One page. Where there are older letters, the header `link` names the next one. */
  async list(
    { limit, before, replayed, parked, ...filter }: Data,
    context: HttpContext,
  ): Promise<DeadLetter[] | object> {
    const fault = faultOf(limit, before)
    if (fault !== null) {
      context.setStatus(422)
      return { success: false, error: 'Validation failed', details: [fault] }
    }
    const isWanted = (flag: unknown) => (flag === 'true' ? true : undefined)
    const size = limit === undefined ? undefined : Number(limit)
    const page = {
      ...filterOf(filter),
      ...defined({ replayed: isWanted(replayed), parked: isWanted(parked), limit: size, before }),
    }
    const letters = await this.#checked(context, () => this.#bus.getDeadLetters(page))
    if (!Array.isArray(letters)) return letters
    const oldest = letters[0]
    if (oldest !== undefined && (await this.#bus.getDeadLetters({ ...page, limit: 1, before: oldest.id })).length > 0) {
      const query = new URLSearchParams({ ...page, before: oldest.id })
      context.setHeader('link', `</system/dead-letters?${query}>; rel="next"`)
    }
    return letters
  }

  /** Removes the letter once it is handed over. A delivery that fails again leaves a new letter. */
  async replay({ id }: Data, context: HttpContext) {
    if (await this.#bus.replayDeadLetter(id)) return this.#done('dead_letter.replay', id, context)
    const letter = await this.#find(id)
    if (letter === undefined) return this.#unknown(id, context)
    context.setStatus(409)
    return { success: false, error: `${letter.subscriber} does not subscribe to ${letter.event} any more` }
  }

  /** Nothing is replayed. */
  async preview({ limit, ids: given, ...filter }: Data, context: HttpContext) {
    const ids = typeof given === 'string' ? [given] : given
    const wanted = { ...filterOf(filter), ...defined({ limit: limit === undefined ? limit : Number(limit), ids }) }
    return this.#checked(context, () => this.#bus.previewReplay(wanted))
  }

  /** What becomes of them is in the list with `replayed=true`. */
  async replayMany({ limit, ids: given, ...filter }: Data, context: HttpContext) {
    const isOne = typeof given === 'string'
    const ids = isOne ? [given] : given
    const wanted = { ...filterOf(filter), ...defined({ limit, ids }) }
    const replayed = await this.#checked(context, () => this.#bus.replayDeadLetters(wanted))
    if (typeof replayed !== 'number') return replayed
    if (isOne && replayed === 0) return this.#unknown(given, context)
    await this.#tell('dead_letter.replay_many', JSON.stringify(wanted).slice(0, TARGET_MAX), context)
    return { success: true, data: { replayed } }
  }

  async payload({ id }: Data, context: HttpContext) {
    const { operator } = context
    const isAllowed = operator === 'token' || (operator === 'anyone' && !this.#isProduction)
    if (!isAllowed) throw new HttpError(403, 'Payloads are shown with SYSTEM_TOKEN, or outside of production')
    const payload = await this.#bus.getDeadLetterPayload(id)
    if (payload === null) return this.#unknown(id, context)
    context.setHeader('cache-control', 'no-store')
    return { success: true, data: { payload } }
  }

  async edit({ id, payload }: Data, context: HttpContext) {
    const isDone = await this.#checked(context, () => this.#bus.editDeadLetter(id, payload))
    if (typeof isDone !== 'boolean') return isDone
    return isDone ? this.#done('dead_letter.edit', id, context) : this.#unknown(id, context)
  }

  /** What a call answers, or why it was refused. */
  async #checked<T>(context: HttpContext, call: () => T | Promise<T>): Promise<T | object> {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof HeddleError) || !REFUSALS.has(error.code)) throw error
      context.setStatus(422)
      return { success: false, error: error.message }
    }
  }

  async #find(id: string): Promise<DeadLetter | undefined> {
    let page = await this.#bus.getDeadLetters()
    while (page.length > 0) {
      const letter = page.find((each) => each.id === id)
      if (letter !== undefined) return letter
      page = await this.#bus.getDeadLetters({ before: page[0]!.id })
    }
    return undefined
  }

  async delete({ id }: Data, context: HttpContext) {
    if (await this.#bus.deleteDeadLetter(id)) return this.#done('dead_letter.delete', id, context)
    return this.#unknown(id, context)
  }

  async #done(action: OperatorAct, id: string, context: HttpContext) {
    await this.#tell(action, id, context)
    return { success: true, data: { id } }
  }

  #tell(action: OperatorAct, target: string, context: HttpContext): Promise<void> {
    return tellOperatorAct({ event_bus: this.#bus, logger: this.#log }, { action, target }, context)
  }

  #unknown(id: string, context: HttpContext) {
    context.setStatus(404)
    return { success: false, error: `There is no dead letter ${id}` }
  }
}

/** Characters of a filter that are told at most. */
const TARGET_MAX = 500

/** Codes of the bus that say what is wrong with a request. */
const REFUSALS = new Set([
  'EVENT_CONTRACT',
  'EVENT_OPTIONS_INVALID',
  'EVENT_PAYLOAD_INVALID',
  'EVENT_PAYLOAD_TOO_LARGE',
])

const filterOf = ({ event, subscriber, error, since, until }: Data) =>
  defined({ event, subscriber, error, since, until })

const defined = (values: object): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** Why a page cannot be listed; null when it can. */
function faultOf(limit: unknown, before: unknown): { path: string; message: string } | null {
  const isLimit =
    limit === undefined || (/^\d{1,4}$/.test(String(limit)) && Number(limit) >= 1 && Number(limit) <= 1000)
  if (!isLimit) return { path: 'limit', message: 'Expected a whole number from 1 to 1000' }
  const isId = before === undefined || (typeof before === 'string' && /^dl_[0-9a-f-]{1,64}$/.test(before))
  return isId ? null : { path: 'before', message: 'Expected the id of a dead letter' }
}
