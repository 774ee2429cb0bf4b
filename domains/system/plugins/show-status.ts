import { Plugin, type SystemDump, type Tools } from '#heddle'

/** The health of every tool and plugin. */
export default class ShowStatus extends Plugin {
  static override thread = 'primary' as const
  #http
  #registry

  constructor({ http, registry }: Tools) {
    super()
    this.#http = http
    this.#registry = registry
  }

  override onBoot() {
    this.#http.addEndpoint('/system/status', 'GET', this.show, {
      tags: ['system'],
      summary: 'The health of tools and plugins',
      description: 'Each with its state, and the error that it booted with.',
    })
  }

  show(): SystemDump {
    return this.#registry.getSystemDump()
  }
}
