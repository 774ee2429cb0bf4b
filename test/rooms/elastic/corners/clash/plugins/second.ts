import { plugin } from '#heddle'

/** Is refused in its lane for its path, after it has subscribed. */
export default plugin(({ http, event_bus, logger }) => {
  http.addEndpoint('/clash', 'GET', () => ({}))
  event_bus.subscribe('clash', function onClash({ n }) {
    logger.info('clash at the second', { n })
  })
})
