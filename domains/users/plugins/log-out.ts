import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { Sessions } from '../sessions.ts'

const body = z.object({ refresh_token: z.string().max(200) })

/** `POST /logout`: ends the session of a refresh token, and with it its access tokens. */
export default class LogOut extends Plugin {
  #http
  #sessions

  constructor({ auth, config, db, http }: Tools) {
    super()
    this.#http = http
    this.#sessions = new Sessions({ auth, config, db })
  }

  override onBoot() {
    this.#http.addEndpoint('/logout', 'POST', this.logOut, { body, tags: ['users'], summary: 'Log out' })
  }

  /** The same answer whether there was such a session or not. */
  async logOut({ refresh_token }: z.infer<typeof body>) {
    await this.#sessions.end(refresh_token)
    return { success: true }
  }
}
