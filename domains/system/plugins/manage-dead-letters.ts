import { type Data, type DeadLetter, type HttpContext, Plugin, type Tools } from '#heddle'

/** Lists the deliveries that failed for good, delivers one again to its subscriber, or deletes it. */
export default class ManageDeadLetters extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus
  #log

  constructor({ http, event_bus, logger }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
    this.#log = logger
  }

  override onBoot() {
    const tags = ['system']
    this.#http.addEndpoint('/system/dead-letters', 'GET', this.list, {
      tags,
      summary:
        'Deliveries that failed for good, oldest first: the newest `limit` (1000), or those before the letter `before`',
    })
    this.#http.addEndpoint('/system/dead-letters/:id/replay', 'POST', this.replay, {
      tags,
      summary: 'Delivers a dead letter once more, to its subscriber alone',
    })
    this.#http.addEndpoint('/system/dead-letters/:id', 'DELETE', this.delete, {
      tags,
      summary: 'Deletes a dead letter',
    })
  }

  /** One page. Where there are older letters, the header `link` names the next one. */
  async list({ limit, before }: Data, context: HttpContext): Promise<DeadLetter[] | object> {
    const fault = faultOf(limit, before)
    if (fault !== null) {
      context.setStatus(422)
      return { success: false, error: 'Validation failed', details: [fault] }
    }
    const page = {
      ...(limit === undefined ? {} : { limit: Number(limit) }),
      ...(before === undefined ? {} : { before }),
    }
    const letters = await this.#bus.getDeadLetters(page)
    const oldest = letters[0]
    if (oldest !== undefined && (await this.#bus.getDeadLetters({ limit: 1, before: oldest.id })).length > 0) {
      const size = limit === undefined ? '' : `limit=${limit}&`
      context.setHeader('link', `</system/dead-letters?${size}before=${oldest.id}>; rel="next"`)
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

  /** Who did it stands in the causal tree and in the log. */
  async #done(action: 'dead_letter.replay' | 'dead_letter.delete', id: string, context: HttpContext) {
    const acted = {
      action,
      target: id,
      by: context.operator ?? 'anyone',
      address: context.ip,
      at: new Date().toISOString(),
    }
    this.#log.info(`An operator acted: ${action}`, { ...acted, request_id: context.requestId })
    try {
      await this.#bus.publish('runtime.operator.acted', acted)
    } catch (error) {
      // It is done, and in the log: a full queue does not make it a failure.
      this.#log.warning(`runtime.operator.acted was not published: ${(error as Error).message}`)
    }
    return { success: true, data: { id } }
  }

  #unknown(id: string, context: HttpContext) {
    context.setStatus(404)
    return { success: false, error: `There is no dead letter ${id}` }
  }
}

/** Why a page cannot be listed; null when it can. */
function faultOf(limit: unknown, before: unknown): { path: string; message: string } | null {
  const isLimit =
    limit === undefined || (/^\d{1,4}$/.test(String(limit)) && Number(limit) >= 1 && Number(limit) <= 1000)
  if (!isLimit) return { path: 'limit', message: 'Expected a whole number from 1 to 1000' }
  const isId = before === undefined || (typeof before === 'string' && /^dl_[0-9a-f-]{1,64}$/.test(before))
  return isId ? null : { path: 'before', message: 'Expected the id of a dead letter' }
}
