import { Plugin, type Tools } from '#heddle'

export default class LendNothing extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.mountStatic('/nothing', '/no/such/folder')
  }
}
