import { clientText, type Data, type HttpContext, Plugin, type Tools } from '#heddle'
import { apiInfo } from '../api-info.ts'
import { domainsDirsOf } from '../configuration.ts'
import { KeptDocument } from '../kept-document.ts'

const TYPE = 'text/plain; charset=utf-8'

/** A typed client of the routes and events of this process, as one TypeScript file; with `?system=true` also of those of the system itself. */
export default class ShowClient extends Plugin {
  static override thread = 'primary' as const
  #http
  #own
  #whole

  constructor({ config, http, registry }: Tools) {
    super()
    const domainsDirs = domainsDirsOf(config)
    const gather = async () => ({ routes: await registry.getRoutes(), title: (await apiInfo(config)).title })
    this.#http = http
    this.#own = new KeptDocument(gather, (facts) => clientText(facts.title, facts.routes, domainsDirs, isOwn))
    this.#whole = new KeptDocument(gather, (facts) => clientText(facts.title, facts.routes, domainsDirs))
  }

  override onBoot() {
    this.#http.addEndpoint('/system/client.ts', 'GET', this.show, {
      tags: ['system'],
      summary: 'A typed client as one TypeScript file',
      description: 'With `system=true` also for the routes under `/system`.',
    })
  }

  async show({ system }: Data, context: HttpContext) {
    context.sendBinary(await (system === 'true' ? this.#whole : this.#own).read(), TYPE)
  }
}

const isOwn = (domain: string) => domain !== 'system'
