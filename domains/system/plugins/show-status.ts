import { type LaneInfo, Plugin, type SystemDump, type Tools } from '#heddle'

/** The health of every tool and plugin, and each lane's state, load and restarts, with its work when it last died. */
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
    this.#http.addEndpoint('/system/status', 'GET', this.showStatus, {
      tags: ['system'],
      summary: 'The health of tools and plugins',
      description: 'Each with its state, and the error that it booted with.',
    })
    this.#http.addEndpoint('/system/lanes', 'GET', this.showLanes, {
      tags: ['system'],
      summary: 'State, load and restarts of each lane',
      description: 'With the last deaths of each, and what it was doing.',
    })
  }

  showStatus(): SystemDump {
    return this.#registry.getSystemDump()
  }

  async showLanes(): Promise<LaneInfo[]> {
    return this.#registry.getLanes()
  }
}
