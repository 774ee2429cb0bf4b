import { z } from 'zod'
import { plugin } from '#heddle'
import { keepOutOfCaches, Sessions } from '../sessions.ts'

const body = z.object({ refresh_token: z.string().max(200) })

/** `POST /login/refresh`: the next token for a refresh token, which works once. One that comes again ends its session. */
export default plugin(({ auth, config, db, http }) => {
  const sessions = new Sessions({ auth, config, db })

  http.post(
    '/login/refresh',
    {
      body,
      tags: ['users'],
      summary: 'Get the next token',
      description: 'Takes a refresh token, once, and gives the next pair. One that comes twice ends the whole session.',
    },
    async ({ refresh_token }, context) => {
      keepOutOfCaches(context)
      const grant = await sessions.renew(refresh_token)
      if (grant !== null) return { success: true, data: grant }
      context.setStatus(401)
      return { success: false, error: 'This refresh token is not valid any more: log in again' }
    },
  )
})
