import { Plugin, type Tools } from '#heddle'

export default class LendFiles extends Plugin {
  #config
  #http

  constructor({ config, http }: Tools) {
    super()
    this.#config = config
    this.#http = http
  }

  override onBoot() {
    this.#http.mountStatic('/files/', this.#config.get('SHELF_DIR', { type: 'string' }))
    this.#http.addEndpoint('/files/special', 'GET', () => ({ success: true, data: 'beats the folder' }))
  }
}
