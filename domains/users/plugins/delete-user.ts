import { type Claims, plugin } from '#heddle'
import { Sessions } from '../sessions.ts'

/** `DELETE /users/:id`: deletes the account that the token belongs to, and no other. Its sessions end, and with them its access tokens. */
export default plugin(({ auth, config, db, http }) => {
  const sessions = new Sessions({ auth, config, db })

  http.delete(
    '/users/:id',
    {
      authValidator: sessions.validateToken,
      tags: ['users'],
      summary: 'Delete the own account',
      description: 'Deletes the account of the token, and ends its sessions.',
    },
    async ({ id, _auth }, context) => {
      if (id !== _auth.sub) {
        context.setStatus(403)
        return { success: false, error: 'You can delete your own account only' }
      }
      let ended = [_auth as Pick<Claims, 'jti' | 'iss' | 'exp'>]
      const answer = await context.commit(async (tx) => {
        ended = [_auth, ...(await sessions.deleteAll(id, tx))]
        const { rowCount } = await tx.execute('DELETE FROM users WHERE id = $1', [id])
        if (rowCount === 0) {
          context.setStatus(404)
          return { success: false, error: 'User not found' }
        }
        await tx.publish('user.deleted', { id })
        return { success: true, data: { id } }
      })
      await sessions.revoke(ended)
      return answer
    },
  )
})
