import { plugin } from '#heddle'

/** Answers, and says where. */
export default plugin(({ config, event_bus }) => {
  const replica = config.get('FLEET_REPLICA', { default: '' })
  event_bus.subscribe('oracle.asked', () => ({ from: replica }))
})
