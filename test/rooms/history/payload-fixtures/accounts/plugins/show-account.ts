import { type Data, type HttpContext, plugin, Sessions } from '#heddle'

export default plugin(({ http, state }) => {
  const sessions: Sessions<{ user_id: number }> = new Sessions(state, { secure: false })
  const authValidator = (token: string) => (token === 'ada' ? { sub: 'ada' } : null)
  http.addEndpoint('/accounts/me', 'GET', show, { authValidator })
  http.addEndpoint('/accounts/sessions', 'POST', start)
  http.addEndpoint('/accounts/mine', 'GET', mine)

  function show() {
    return { success: true }
  }

  async function start(_data: Data, context: HttpContext) {
    await sessions.start(context, { user_id: 7 })
    return { success: true }
  }

  async function mine(_data: Data, context: HttpContext) {
    return sessions.require(context)
  }
})
