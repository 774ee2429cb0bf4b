import { type EventMeta, type Payload, Plugin, type Tools } from '#heddle'
import { writeSeen } from '../seen.ts'

/** Writes down each new user that it hears of, as often as it does, and tells of it in turn. */
export default class WitnessUsers extends Plugin {
  #bus
  #db
  #replica

  constructor({ config, db, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#replica = config.get('FLEET_REPLICA', { default: '' })
  }

  override onBoot() {
    this.#bus.subscribe('user.created', this.witness)
    this.#bus.subscribe('user.witnessed', this.note)
  }

  async witness(data: Payload, event: EventMeta): Promise<void> {
    await this.#bus.publish('user.witnessed', { id: data.id })
    await writeSeen(this.#db, this.#replica, 'ends', data, event)
  }

  async note(data: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'ends', data, event)
  }
}
