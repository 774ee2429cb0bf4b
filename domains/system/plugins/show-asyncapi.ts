import { asyncApiDocument, type Data, type HttpContext, Plugin, scanEvents, type Tools } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf } from '../configuration.ts'
import { JSON_TYPE, KeptDocument } from '../kept-document.ts'

type Parties = Record<string, { emitters: string[]; subscribers: string[] }>

/** The events of this process as an AsyncAPI document: events that contracts or sources name, and events that have fired. */
export default class ShowAsyncApi extends Plugin {
  static override thread = 'primary' as const
  #bus
  #http
  #document
  #domainsDirs: string[]

  constructor({ config, event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
    this.#domainsDirs = domainsDirsOf(config)
    this.#document = new KeptDocument(
      async () => ({ parties: await this.#parties(), info: await apiInfo(config) }),
      ({ parties, info }) => asyncApiDocument(parties, this.#domainsDirs, info),
    )
  }

  override onBoot() {
    this.#http.addEndpoint('/system/asyncapi.json', 'GET', this.show, {
      tags: ['system'],
      summary: 'The events as an AsyncAPI 3.0 document',
      description: 'Who publishes each event, who subscribes, and what is in it.',
    })
  }

  async show(_data: Data, context: HttpContext) {
    context.sendBinary(await this.#document.read(), JSON_TYPE)
  }

  async #parties(): Promise<Parties> {
    const parties: Parties = {}
    const seen = Object.entries(await this.#bus.getTopology()).map(([event, entry]) => ({ event, ...entry }))
    for (const { event, emitters, subscribers } of [...seen, ...(await scanEvents(this.#domainsDirs))]) {
      const known = parties[event]
      parties[event] = {
        emitters: [...new Set([...(known?.emitters ?? []), ...emitters])].sort(),
        subscribers: [...new Set([...(known?.subscribers ?? []), ...subscribers])].sort(),
      }
    }
    return parties
  }
}
