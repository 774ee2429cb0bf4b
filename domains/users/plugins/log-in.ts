import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { networkOf, plugin } from '#heddle'
import { Attempts } from '../attempts.ts'
import { keepOutOfCaches, Sessions } from '../sessions.ts'

const credentials = z.object({ email: z.email().max(254).toLowerCase(), password: z.string() })

const grant = z.object({
  success: z.literal(true),
  data: z.object({ token: z.string(), expires_in: z.number(), refresh_token: z.string() }),
})

/**
 * `POST /login`: a token and a refresh token for an e-mail and its password. Neither the response nor its duration shows whether the e-mail is known.
 * Wrong tries count for the e-mail at one address, so that a stranger's do not lock out its owner, and for the address over all e-mails.
 */
export default plugin(({ auth, config, db, http, state }) => {
  let dummyHash: Promise<string> | undefined
  const sessions = new Sessions({ auth, config, db })
  const windowMs = config.get('LOGIN_WINDOW_MS', { default: 60_000 })
  const attempts = new Attempts(state, {
    namespace: 'login-attempts',
    max: config.get('LOGIN_MAX_ATTEMPTS', { default: 5 }),
    windowMs,
  })
  const attemptsOfAddress = new Attempts(state, {
    namespace: 'login-attempts-of-address',
    max: config.get('LOGIN_MAX_PER_ADDRESS', { default: 30 }),
    windowMs,
  })

  http.post(
    '/login',
    {
      body: credentials,
      response: grant,
      throws: { 401: 'Wrong e-mail or password', 429: 'Too many attempts' },
      tags: ['users'],
      summary: 'Log in',
      description:
        'Checks e-mail and password, and gives an access token with a refresh token. Too many wrong passwords for one address are refused for a while.',
    },
    async ({ email, password }, context) => {
      const address = networkOf(context.ip)
      const account = `${email} ${address}`
      // Before the work: what is counted after it could be done at the same time as often as anybody likes. The address first: it
      // bounds how many e-mails are counted for it.
      if (!(await attemptsOfAddress.take(address))) return attemptsOfAddress.refuse(context)
      if (!(await attempts.take(account))) {
        await attemptsOfAddress.giveBack(address)
        return attempts.refuse(context)
      }
      const user = await userOf(email, password).catch(async (error) => {
        // Nothing was compared: too many passwords wait just now, or the database is away.
        await Promise.all([attempts.giveBack(account), attemptsOfAddress.giveBack(address)])
        throw error
      })
      if (user === null) {
        context.setStatus(401)
        return { success: false, error: 'Wrong e-mail or password' }
      }
      await attempts.forget(account)
      await attemptsOfAddress.giveBack(address)
      keepOutOfCaches(context)
      return { success: true, data: await sessions.begin(user.id) }
    },
  )

  /** The user with this e-mail and password; null when there is none. */
  async function userOf(email: string, password: string): Promise<{ id: string } | null> {
    // Made by the first login of a thread. It is compared with when there is no such user, so that both cases take the same time.
    dummyHash ??= auth.hashPassword(randomUUID()).catch((error) => {
      // Too many passwords wait just now: a later login makes it.
      dummyHash = undefined
      throw error
    })
    const dummy = await dummyHash
    const user = await db.queryOne<{ id: string; password_hash: string }>(
      'SELECT id, password_hash FROM users WHERE email = $1',
      [email],
    )
    const isRight = await auth.verifyPassword(password, user?.password_hash ?? dummy)
    return isRight ? user : null
  }
})
