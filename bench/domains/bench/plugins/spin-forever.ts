import { Plugin, type Tools } from '#heddle'

/** A handler that blocks its thread for ever, until its lane is stopped. */
export default class SpinForever extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    this.#http.addEndpoint('/bench/spin', 'GET', this.spin, { tags: ['bench'] })
  }

  spin(): never {
    for (;;);
  }
}
