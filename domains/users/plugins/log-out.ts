import { z } from 'zod'
import { plugin } from '#heddle'
import { Sessions } from '../sessions.ts'

const body = z.object({ refresh_token: z.string().max(200) })

/** `POST /logout`: ends the session of a refresh token, and with it its access tokens. */
export default plugin(({ auth, config, db, http }) => {
  const sessions = new Sessions({ auth, config, db })

  /** The same answer whether there was such a session or not. */
  http.post(
    '/logout',
    { body, tags: ['users'], summary: 'Log out', description: 'Ends the session of a refresh token.' },
    async ({ refresh_token }) => {
      await sessions.end(refresh_token)
      return { success: true }
    },
  )
})
