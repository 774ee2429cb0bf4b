import { z } from 'zod'
import { plugin } from '#heddle'
import { Sessions } from '../sessions.ts'

const account = z.object({ id: z.string(), name: z.string(), email: z.string(), created_at: z.string() })

/** `GET /users/me`: the account that the token belongs to. */
export default plugin(({ auth, config, db, http }) => {
  const sessions = new Sessions({ auth, config, db })

  http.get(
    '/users/me',
    {
      authValidator: sessions.validateToken,
      tags: ['users'],
      response: z.object({ success: z.literal(true), data: account }),
      throws: { 404: 'The account is deleted' },
      summary: 'The own account',
      description: 'The account that the token belongs to.',
    },
    async ({ _auth }, context) => {
      const user = await db.queryOne<z.infer<typeof account>>(
        'SELECT id, name, email, created_at FROM users WHERE id = $1',
        [_auth.sub],
      )
      if (user === null) {
        // The token is valid longer than its user exists.
        context.setStatus(404)
        return { success: false, error: 'User not found' }
      }
      return { success: true, data: user }
    },
  )
})
