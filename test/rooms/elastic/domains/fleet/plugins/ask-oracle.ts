import { type HeddleError, Plugin, type Tools } from '#heddle'

/** Asks a subscriber that another replica may have. */
export default class AskOracle extends Plugin {
  #bus
  #http

  constructor({ event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/ask', 'GET', this.ask)
  }

  async ask() {
    try {
      return await this.#bus.request('oracle.asked', { question: 'who' })
    } catch (error) {
      return { code: (error as HeddleError).code }
    }
  }
}
