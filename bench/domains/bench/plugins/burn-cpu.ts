import { Plugin, type Tools } from '#heddle'
import { spin } from '../spin.ts'

/** Pure computation in a handler, which is what lanes are for. The path says how much; the benchmark calibrates it. */
export default class BurnCpu extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    this.#http.addEndpoint('/bench/cpu/:iterations', 'GET', this.burn, { tags: ['bench'] })
  }

  burn(data: { iterations?: string }) {
    return { success: true, data: { checksum: spin(Number(data.iterations)) } }
  }
}
