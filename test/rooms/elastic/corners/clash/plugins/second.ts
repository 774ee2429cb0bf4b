import { Plugin, type Tools } from '#heddle'

/** Is refused in its lane for its path, after it has subscribed. */
export default class Second extends Plugin {
  constructor({ http, event_bus, logger }: Tools) {
    super()
    http.addEndpoint('/clash', 'GET', () => ({}))
    event_bus.subscribe('clash', function onClash({ n }) {
      logger.info('clash at the second', { n })
    })
  }
}
