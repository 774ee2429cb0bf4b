import { z } from 'zod'
import { type Claims, type HttpContext, Plugin, type Tools } from '#heddle'
import { Sessions } from '../sessions.ts'

const account = z.object({ id: z.string(), name: z.string(), email: z.string(), created_at: z.string() })

/** `GET /users/me`: the account that the token belongs to. */
export default class ShowMe extends Plugin {
  #db
  #http
  #sessions

  constructor({ auth, config, db, http }: Tools) {
    super()
    this.#db = db
    this.#http = http
    this.#sessions = new Sessions({ auth, config, db })
  }

  override onBoot() {
    this.#http.addEndpoint('/users/me', 'GET', this.show, {
      authValidator: this.#sessions.validateToken,
      tags: ['users'],
      response: z.object({ success: z.literal(true), data: account }),
      throws: { 404: 'The account is deleted' },
      summary: 'The own account',
    })
  }

  async show({ _auth }: { _auth: Claims }, context: HttpContext) {
    const user = await this.#db.queryOne<z.infer<typeof account>>(
      'SELECT id, name, email, created_at FROM users WHERE id = $1',
      [_auth.sub],
    )
    if (user === null) {
      // The token is valid longer than its user exists.
      context.setStatus(404)
      return { success: false, error: 'User not found' }
    }
    return { success: true, data: user }
  }
}
