import { type EventMeta, plugin, Unrecoverable } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Checks what it is asked to. A bad check holds up its key until somebody has edited or deleted it. */
export default plugin(({ db, event_bus }) => {
  event_bus.subscribe('check.asked', check, { ...PATIENT, onDead: 'park' })

  async function check({ is_bad: isBad, ...order }: Order & { is_bad: boolean }, event: EventMeta) {
    if (isBad) throw new Unrecoverable('bad check')
    await noteHandled(db, order, event, null)
  }
})
