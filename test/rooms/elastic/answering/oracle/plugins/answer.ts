import { Plugin, type Tools } from '#heddle'

/** Answers, and says where. */
export default class Answer extends Plugin {
  #bus
  #replica

  constructor({ config, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#replica = config.get('FLEET_REPLICA', { default: '' })
  }

  override onBoot() {
    this.#bus.subscribe('oracle.asked', () => ({ from: this.#replica }))
  }
}
