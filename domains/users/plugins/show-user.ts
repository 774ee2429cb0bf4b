import { type HttpContext, Plugin, type Tools } from '#heddle'

/** `GET /users/:id`: the public data of a user. */
export default class ShowUser extends Plugin {
  #db
  #http

  constructor({ db, http }: Tools) {
    super()
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/users/:id', 'GET', this.show, { tags: ['users'], summary: 'A user in public' })
  }

  async show({ id }: { id: string }, context: HttpContext) {
    const user = await this.#db.queryOne('SELECT id, name, created_at FROM users WHERE id = $1', [id])
    if (user === null) {
      context.setStatus(404)
      return { success: false, error: 'User not found' }
    }
    return { success: true, data: user }
  }
}
