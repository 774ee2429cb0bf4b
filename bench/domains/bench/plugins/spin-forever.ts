import { Plugin, type Tools } from '#heddle'

/** A handler that never gives its thread back: the fault that costs a lane. */
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
