import { type EventMeta, Plugin, type Tools, Unrecoverable } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Checks what it is asked to. A bad check holds up its key until somebody has edited or deleted it. */
export default class CheckOrders extends Plugin {
  #db

  constructor({ db, event_bus }: Tools) {
    super()
    this.#db = db
    event_bus.subscribe('check.asked', this.check, { ...PATIENT, onDead: 'park' })
  }

  async check({ is_bad: isBad, ...order }: Order & { is_bad: boolean }, event: EventMeta) {
    if (isBad) throw new Unrecoverable('bad check')
    await noteHandled(this.#db, order, event, null)
  }
}
