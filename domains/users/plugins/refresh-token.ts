import { z } from 'zod'
import { type HttpContext, Plugin, type Tools } from '#heddle'
import { keepOutOfCaches, Sessions } from '../sessions.ts'

const body = z.object({ refresh_token: z.string().max(200) })

/** `POST /login/refresh`: the next token for a refresh token, which works once. One that comes again ends its session. */
export default class RefreshToken extends Plugin {
  #http
  #sessions

  constructor({ auth, config, db, http }: Tools) {
    super()
    this.#http = http
    this.#sessions = new Sessions({ auth, config, db })
  }

  override onBoot() {
    this.#http.addEndpoint('/login/refresh', 'POST', this.refresh, {
      body,
      tags: ['users'],
      summary: 'Get the next token',
    })
  }

  async refresh({ refresh_token }: z.infer<typeof body>, context: HttpContext) {
    keepOutOfCaches(context)
    const grant = await this.#sessions.renew(refresh_token)
    if (grant !== null) return { success: true, data: grant }
    context.setStatus(401)
    return { success: false, error: 'This refresh token is not valid any more: log in again' }
  }
}
