import { pathToFileURL } from 'node:url'
import { Plugin, type Tools } from '#heddle'

export default class LendFromPrimary extends Plugin {
  static override thread = 'primary' as const
  #config
  #http

  constructor({ config, http }: Tools) {
    super()
    this.#config = config
    this.#http = http
  }

  override onBoot() {
    this.#http.mountStatic('/', pathToFileURL(this.#config.get('SHELF_DIR', { type: 'string' })))
  }
}
