import { type Claims, type HttpContext, Plugin, type Tools } from '#heddle'

/** `DELETE /users/:id`: deletes the account that the token belongs to, and no other. */
export default class DeleteUser extends Plugin {
  #auth
  #http

  constructor({ auth, http }: Tools) {
    super()
    this.#auth = auth
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/users/:id', 'DELETE', this.delete, {
      authValidator: this.#auth.validateToken,
      tags: ['users'],
      summary: 'Delete the own account',
    })
  }

  async delete({ id, _auth }: { id: string; _auth: Claims }, context: HttpContext) {
    if (id !== _auth.sub) {
      context.setStatus(403)
      return { success: false, error: 'You can delete your own account only' }
    }
    return context.commit(async (tx) => {
      const { rowCount } = await tx.execute('DELETE FROM users WHERE id = $1', [id])
      if (rowCount === 0) {
        context.setStatus(404)
        return { success: false, error: 'User not found' }
      }
      await tx.publish('user.deleted', { id })
      return { success: true, data: { id } }
    })
  }
}
