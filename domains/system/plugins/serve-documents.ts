import {
  asyncApiDocument,
  clientText,
  type Data,
  type HttpContext,
  openApiDocument,
  Plugin,
  scanEvents,
  type Tools,
} from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf } from '../configuration.ts'
import { KeptDocument } from '../kept-document.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'

type Parties = Record<string, { emitters: string[]; subscribers: string[] }>

/** The interface of this process as documents: OpenAPI, AsyncAPI, and a typed client as one TypeScript file. */
export default class ServeDocuments extends Plugin {
  static override thread = 'primary' as const
  #bus
  #http
  #domainsDirs: string[]
  #openApi
  #asyncApi
  #ownClient
  #wholeClient

  constructor({ config, event_bus, http, registry }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
    const domainsDirs = domainsDirsOf(config)
    this.#domainsDirs = domainsDirs
    this.#openApi = new KeptDocument(
      async () => ({
        routes: await registry.getRoutes(),
        info: await apiInfo(config),
        url: registry.getSystemDump().listener?.application?.url,
      }),
      ({ routes, info, url }) => openApiDocument(routes, info, url),
    )
    this.#asyncApi = new KeptDocument(
      async () => ({ parties: await this.#parties(), info: await apiInfo(config) }),
      ({ parties, info }) => asyncApiDocument(parties, domainsDirs, info),
    )
    const ofClient = async () => ({ routes: await registry.getRoutes(), title: (await apiInfo(config)).title })
    this.#ownClient = new KeptDocument(ofClient, ({ title, routes }) =>
      clientText(title, routes, domainsDirs, (domain) => domain !== 'system'),
    )
    this.#wholeClient = new KeptDocument(ofClient, ({ title, routes }) => clientText(title, routes, domainsDirs))
  }

  override onBoot() {
    const tags = ['system']
    this.#http.addEndpoint('/system/openapi.json', 'GET', this.showOpenApi, {
      tags,
      summary: 'The HTTP interface as an OpenAPI 3.1 document',
      description: 'All routes with their schemas, and the answers of the runtime itself.',
    })
    this.#http.addEndpoint('/system/asyncapi.json', 'GET', this.showAsyncApi, {
      tags,
      summary: 'The events as an AsyncAPI 3.0 document',
      description: 'Who publishes each event, who subscribes, and what is in it.',
    })
    this.#http.addEndpoint('/system/client.ts', 'GET', this.showClient, {
      tags,
      summary: 'A typed client as one TypeScript file',
      description: 'With `system=true` also for the routes under `/system`.',
    })
  }

  async showOpenApi(_data: Data, context: HttpContext) {
    context.sendBinary(await this.#openApi.read(), JSON_TYPE)
  }

  async showAsyncApi(_data: Data, context: HttpContext) {
    context.sendBinary(await this.#asyncApi.read(), JSON_TYPE)
  }

  async showClient({ system }: Data, context: HttpContext) {
    context.sendBinary(await (system === 'true' ? this.#wholeClient : this.#ownClient).read(), TEXT_TYPE)
  }

  /** Of the events that contracts or sources name, and of those that have fired. */
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
