import { type Claims, type HttpContext, Plugin, type Tools } from '#heddle'
import { Sessions } from '../sessions.ts'

/** `DELETE /users/:id`: deletes the account that the token belongs to, and no other. Its sessions end, and with them its access tokens. */
export default class DeleteUser extends Plugin {
  #http
  #sessions

  constructor({ auth, config, db, http }: Tools) {
    super()
    this.#http = http
    this.#sessions = new Sessions({ auth, config, db })
  }

  override onBoot() {
    this.#http.addEndpoint('/users/:id', 'DELETE', this.delete, {
      authValidator: this.#sessions.validateToken,
      tags: ['users'],
      summary: 'Delete the own account',
    })
  }

  async delete({ id, _auth }: { id: string; _auth: Claims }, context: HttpContext) {
    if (id !== _auth.sub) {
      context.setStatus(403)
      return { success: false, error: 'You can delete your own account only' }
    }
    let ended = [_auth as Pick<Claims, 'jti' | 'iss' | 'exp'>]
    const answer = await context.commit(async (tx) => {
      ended = [_auth, ...(await this.#sessions.deleteAll(id, tx))]
      const { rowCount } = await tx.execute('DELETE FROM users WHERE id = $1', [id])
      if (rowCount === 0) {
        context.setStatus(404)
        return { success: false, error: 'User not found' }
      }
      await tx.publish('user.deleted', { id })
      return { success: true, data: { id } }
    })
    await this.#sessions.revoke(ended)
    return answer
  }
}
