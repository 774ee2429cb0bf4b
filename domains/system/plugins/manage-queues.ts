import { z } from 'zod'
import {
  type Data,
  type DeliveryPage,
  HeddleError,
  type HttpContext,
  HttpError,
  Plugin,
  type Queue,
  type Tools,
} from '#heddle'
import { isProduction } from '../configuration.ts'
import { type OperatorAct, tellOperatorAct } from '../operator-acts.ts'

const EVENT = z.unknown().optional().meta({ description: 'The event. Needed if the subscriber has several.' })
const WHICH = z.looseObject({ event: EVENT })
const CANCEL = z.looseObject({
  caused_too: z.boolean().optional().meta({ description: 'True: with everything that the event has caused.' }),
})
/** What the bus checks itself is told here for the documents alone. */
const PAGE = z.looseObject({
  event: EVENT,
  state: z
    .unknown()
    .optional()
    .meta({ description: '`waiting` (default), `running`, `later`, `retrying` or `blocked`.' }),
  key: z.unknown().optional(),
  id: z.unknown().optional().meta({ description: 'Of the event.' }),
  search: z.unknown().optional().meta({ description: 'A part of the payload, for who may see it.' }),
  payloads: z.unknown().optional().meta({ description: '`true`: with payloads, for who may see them.' }),
  limit: z.unknown().optional().meta({ description: 'From 1 to 500. Default 100.' }),
  after: z.unknown().optional().meta({ description: '`next` of the page before.' }),
})

/** Shows what waits for each subscriber, pauses subscribers, and runs or takes back single deliveries. */
export default class ManageQueues extends Plugin {
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
    this.#http.addEndpoint('/system/queues', 'GET', () => this.#bus.queues(), {
      tags,
      summary: 'What waits for each subscriber',
      description:
        'How many wait, run, come later, have failed and are tried again, and are dead; the age of the first, the rates of the last minute, and when it is empty at these. Over all processes that share a database.',
    })
    this.#http.addEndpoint('/system/queues/:subscriber', 'GET', this.list, {
      tags,
      query: PAGE,
      throws: { 403: 'Payloads are for whoever may change them: with `SYSTEM_TOKEN`, or outside of production' },
      summary: 'The deliveries of a subscriber',
      description: 'A page of them, and `next` for the page behind it.',
    })
    this.#http.addEndpoint(
      '/system/queues/:subscriber/pause',
      'POST',
      (data, context) => this.setPaused(data, context, true),
      {
        tags,
        body: WHICH,
        summary: 'Pauses a subscriber',
        description: 'In all processes, and over restarts. What runs ends, everything else waits.',
      },
    )
    this.#http.addEndpoint(
      '/system/queues/:subscriber/resume',
      'POST',
      (data, context) => this.setPaused(data, context, false),
      {
        tags,
        body: WHICH,
        summary: 'Resumes a subscriber',
        description: 'It goes on with what has waited.',
      },
    )
    this.#http.addEndpoint('/system/queues/:subscriber/:id/run', 'POST', this.run, {
      tags,
      summary: 'Lets a delivery begin now',
      description: 'One that waits for its time, or for the next attempt.',
    })
    this.#http.addEndpoint('/system/events/:id/cancel', 'POST', this.cancel, {
      tags,
      body: CANCEL,
      summary: 'Takes an event back',
      description: 'From all of its subscribers: what waits is gone, and handlers that run are told.',
    })
  }

  async list({ subscriber, event, ...wanted }: Data, context: HttpContext): Promise<DeliveryPage | object> {
    const { search, payloads, limit, ...rest } = wanted
    const withPayloads = payloads === 'true'
    if (withPayloads || search !== undefined) this.#needPayloads(context)
    if (withPayloads) context.setHeader('cache-control', 'no-store')
    return this.#checked(context, async () => {
      const queue = await this.#queue(subscriber, event)
      const number = limit === undefined ? undefined : Number(limit)
      const { state, key, id, after } = rest
      const page = { state, key, id, search, after, limit: number, payloads: withPayloads || undefined }
      return this.#bus.getDeliveries({ event: queue.event, subscriber: queue.subscriber, ...defined(page) })
    })
  }

  /** @throws HttpError 403 */
  #needPayloads({ operator }: HttpContext): void {
    if (operator === 'token' || (operator === 'anyone' && !this.#isProduction)) return
    throw new HttpError(403, 'Payloads are shown, and searched, with SYSTEM_TOKEN, or outside of production')
  }

  /** @throws HttpError 404, 422 */
  async #queue(subscriber: unknown, event: unknown): Promise<Queue> {
    const found = (await this.#bus.queues()).filter(
      (queue) => queue.subscriber === subscriber && (event === undefined || queue.event === event),
    )
    if (found.length === 0)
      throw new HttpError(404, `There is no subscriber ${subscriber}${event === undefined ? '' : ` of ${event}`}`)
    if (found.length === 1) return found[0]!
    const names = found.map((queue) => queue.event).join(', ')
    throw new HttpError(422, `${subscriber} has ${found.length} events: name one of them as \`event\`: ${names}`)
  }

  async setPaused({ subscriber, event }: Data, context: HttpContext, isPaused: boolean) {
    const queue = await this.#queue(subscriber, event)
    const done = await this.#bus[isPaused ? 'pause' : 'resume'](queue.event, queue.subscriber)
    if (done > 0)
      await this.#tell(isPaused ? 'queue.pause' : 'queue.resume', `${queue.event} ${queue.subscriber}`, context)
    return { success: true, data: { event: queue.event, subscriber: queue.subscriber, changed: done > 0 } }
  }

  async run({ subscriber, id }: Data, context: HttpContext) {
    return this.#checked(context, async () => {
      const runs = await this.#bus.runNow(id, subscriber)
      if (runs === 0) throw new HttpError(404, `${id} does not wait for a time at ${subscriber}`)
      await this.#tell('delivery.run', `${id} ${subscriber}`, context)
      return { success: true, data: { id, runs } }
    })
  }

  async cancel({ id, caused_too: causedToo = false }: Data, context: HttpContext) {
    return this.#checked(context, async () => {
      const taken = await this.#bus.cancel(String(id), { causedToo: causedToo === true })
      const which = causedToo ? ', nor does what it has caused' : ''
      if (taken.waiting + taken.running === 0) throw new HttpError(404, `${id} neither waits nor runs${which}`)
      await this.#tell('event.cancel', String(id), context)
      return { success: true, data: { id, ...taken } }
    })
  }

  /** What a call answers, or what is wrong with the request. */
  async #checked<T>(context: HttpContext, call: () => Promise<T>): Promise<T | object> {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof HeddleError) || error.code !== 'EVENT_OPTIONS_INVALID') throw error
      context.setStatus(422)
      return { success: false, error: error.message }
    }
  }

  #tell(action: OperatorAct, target: string, context: HttpContext): Promise<void> {
    return tellOperatorAct({ event_bus: this.#bus, logger: this.#log }, { action, target }, context)
  }
}

const defined = <T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
