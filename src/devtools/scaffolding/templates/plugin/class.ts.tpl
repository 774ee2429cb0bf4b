import { z } from 'zod'
import { type HttpContext, Plugin, type Tools } from 'heddle'

const options = {
{{schemas}}{{status}}  tags: ['{{domain}}'],
  summary: '{{summary}}',
}

/** `{{method}} {{path}}`: {{purpose}}. */
export default class {{Class}} extends Plugin {
  #http
  #log

  constructor({ http, logger }: Tools) {
    super()
    this.#http = http
    this.#log = logger
  }

  override onBoot() {
    this.#http.{{register}}('{{path}}', options, this.{{handler}})
  }

  async {{handler}}({ {{fields}} }: { {{types}} }, context: HttpContext) {
    this.#log.info('{{summary}}', { {{fields}}, request_id: context.requestId })
    return { success: true, data: {{data}} }
  }
}
