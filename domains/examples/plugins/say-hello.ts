import { Plugin, type Tools } from '#heddle'

export default class SayHello extends Plugin {
  #http
  constructor({ http }: Tools) {
    super()
    this.#http = http
  }
  override onBoot() {
    this.#http.addEndpoint('/hello/:name', 'GET', ({ name }) => ({ success: true, data: { hello: name } }))
  }
}
