import { Plugin, type Tools } from '#heddle'

/** Has its path before a lane's plugin asks for it. */
export default class First extends Plugin {
  static override thread = 'primary' as const

  constructor({ http, event_bus, logger }: Tools) {
    super()
    http.addEndpoint('/clash', 'GET', () => ({}))
    event_bus.subscribe('clash', function onClash({ n }) {
      logger.info('clash at the first', { n })
    })
  }
}
