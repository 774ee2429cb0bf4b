import { type Data, type HttpContext, Plugin, Sessions, type Tools } from '#heddle'

export default class ShowAccount extends Plugin {
  #sessions: Sessions<{ user_id: number }>

  constructor({ http, state }: Tools) {
    super()
    this.#sessions = new Sessions(state, { secure: false })
    const authValidator = (token: string) => (token === 'ada' ? { sub: 'ada' } : null)
    http.addEndpoint('/accounts/me', 'GET', this.show, { authValidator })
    http.addEndpoint('/accounts/sessions', 'POST', this.start)
    http.addEndpoint('/accounts/mine', 'GET', this.mine)
  }

  show() {
    return { success: true }
  }

  async start(_data: Data, context: HttpContext) {
    await this.#sessions.start(context, { user_id: 7 })
    return { success: true }
  }

  async mine(_data: Data, context: HttpContext) {
    return this.#sessions.require(context)
  }
}
