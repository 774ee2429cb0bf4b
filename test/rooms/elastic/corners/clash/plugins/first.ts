import { plugin } from '#heddle'

/** Has its path before a lane's plugin asks for it. */
export default plugin(
  ({ http, event_bus, logger }) => {
    http.addEndpoint('/clash', 'GET', () => ({}))
    event_bus.subscribe('clash', function onClash({ n }) {
      logger.info('clash at the first', { n })
    })
  },
  { thread: 'primary' },
)
