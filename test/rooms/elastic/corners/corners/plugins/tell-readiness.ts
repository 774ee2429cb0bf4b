import { Plugin, type Tools } from '#heddle'

export default class TellReadiness extends Plugin {
  static override thread = 'primary' as const

  constructor({ http, registry }: Tools) {
    super()
    http.addEndpoint('/readiness', 'GET', () => registry.getReadiness())
  }
}
