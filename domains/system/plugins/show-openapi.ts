import { type Data, type HttpContext, openApiDocument, Plugin, type Tools } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { JSON_TYPE, KeptDocument } from '../kept-document.ts'

/** The routes of this process as an OpenAPI document. */
export default class ShowOpenApi extends Plugin {
  static override thread = 'primary' as const
  #http
  #document

  constructor({ config, http, registry }: Tools) {
    super()
    this.#http = http
    this.#document = new KeptDocument(
      async () => ({
        routes: await registry.getRoutes(),
        info: await apiInfo(config),
        url: registry.getSystemDump().listener?.application?.url,
      }),
      ({ routes, info, url }) => openApiDocument(routes, info, url),
    )
  }

  override onBoot() {
    this.#http.addEndpoint('/system/openapi.json', 'GET', this.show, {
      tags: ['system'],
      summary: 'The HTTP interface as an OpenAPI 3.1 document',
      description: 'All routes with their schemas, and the answers of the runtime itself.',
    })
  }

  async show(_data: Data, context: HttpContext) {
    context.sendBinary(await this.#document.read(), JSON_TYPE)
  }
}
