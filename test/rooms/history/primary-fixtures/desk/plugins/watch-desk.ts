import { Plugin, type Tools } from '#heddle'

export default class WatchDesk extends Plugin {
  static override thread = 'primary' as const
  #state
  #bus

  constructor({ http, state, event_bus, scheduler }: Tools) {
    super()
    this.#state = state
    this.#bus = event_bus
    http.addEndpoint('/desk', 'GET', this.look)
    http.addEndpoint('/system/desk', 'GET', this.look)
    http.addEndpoint('/system/desk/broken', 'GET', this.fall)
    event_bus.subscribe('desk.looked', this.note)
    scheduler.every('dust', 200, this.dust)
  }

  async look() {
    await this.#state.get('desk')
    await this.#bus.publish('desk.looked', {})
    return { success: true }
  }

  fall(): never {
    throw new Error('The desk has fallen')
  }

  async note() {
    await this.#state.set('desk', 'looked at')
  }

  async dust() {
    await this.#state.increment('dust')
  }
}
