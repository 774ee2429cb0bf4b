import { type HttpContext, Plugin, type Tools } from '#heddle'

/** The smallest handler there is: what a request costs without work. */
export default class SayHello extends Plugin {
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    this.#http.addEndpoint('/hello/:name', 'GET', this.hello, { tags: ['bench'] })
  }

  hello(data: { name?: string }, _context: HttpContext) {
    return { success: true, data: { hello: data.name } }
  }
}
