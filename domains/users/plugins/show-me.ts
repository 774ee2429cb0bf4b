import { z } from 'zod'
import { type Claims, type HttpContext, Plugin, type Tools } from '#heddle'

const account = z.object({ id: z.string(), name: z.string(), email: z.string(), created_at: z.string() })

/** `GET /users/me`: the account that the token belongs to. */
export default class ShowMe extends Plugin {
  #auth
  #db
  #http

  constructor({ auth, db, http }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/users/me', 'GET', this.show, {
      authValidator: this.#auth.validateToken,
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
