import { type LaneInfo, Plugin, type Tools } from '#heddle'

/** Each lane's state, load and restarts, and its work when it last died. */
export default class ShowLanes extends Plugin {
  static override thread = 'primary' as const
  #http
  #registry

  constructor({ http, registry }: Tools) {
    super()
    this.#http = http
    this.#registry = registry
  }

  override onBoot() {
    this.#http.addEndpoint('/system/lanes', 'GET', this.show, {
      tags: ['system'],
      summary: 'State, load and restarts of each lane',
      description: 'With the last deaths of each, and what it was doing.',
    })
  }

  async show(): Promise<LaneInfo[]> {
    return this.#registry.getLanes()
  }
}
