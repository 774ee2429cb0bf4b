import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type HttpContext, networkOf, Plugin, type Tools } from '#heddle'
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
export default class LogIn extends Plugin {
  #auth
  #db
  #http
  #sessions
  #attempts
  #attemptsOfAddress
  #dummyHash: Promise<string> | undefined

  constructor({ auth, config, db, http, state }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
    this.#sessions = new Sessions({ auth, config, db })
    const windowMs = config.get('LOGIN_WINDOW_MS', { default: 60_000 })
    this.#attempts = new Attempts(state, {
      namespace: 'login-attempts',
      max: config.get('LOGIN_MAX_ATTEMPTS', { default: 5 }),
      windowMs,
    })
    this.#attemptsOfAddress = new Attempts(state, {
      namespace: 'login-attempts-of-address',
      max: config.get('LOGIN_MAX_PER_ADDRESS', { default: 30 }),
      windowMs,
    })
  }

  override onBoot() {
    this.#http.addEndpoint('/login', 'POST', this.logIn, {
      body: credentials,
      response: grant,
      throws: { 401: 'Wrong e-mail or password', 429: 'Too many attempts' },
      tags: ['users'],
      summary: 'Log in',
    })
  }

  async logIn({ email, password }: z.infer<typeof credentials>, context: HttpContext) {
    const address = networkOf(context.ip)
    const account = `${email} ${address}`
    // Before the work: what is counted after it could be done at the same time as often as anybody likes. The address first: it
    // bounds how many e-mails are counted for it.
    if (!(await this.#attemptsOfAddress.take(address))) return this.#attemptsOfAddress.refuse(context)
    if (!(await this.#attempts.take(account))) {
      await this.#attemptsOfAddress.giveBack(address)
      return this.#attempts.refuse(context)
    }
    const user = await this.#userOf(email, password).catch(async (error) => {
      // Nothing was compared: too many passwords wait just now, or the database is away.
      await Promise.all([this.#attempts.giveBack(account), this.#attemptsOfAddress.giveBack(address)])
      throw error
    })
    if (user === null) {
      context.setStatus(401)
      return { success: false, error: 'Wrong e-mail or password' }
    }
    await this.#attempts.forget(account)
    await this.#attemptsOfAddress.giveBack(address)
    keepOutOfCaches(context)
    return { success: true, data: await this.#sessions.begin(user.id) }
  }

  /** The user with this e-mail and password; null when there is none. */
  async #userOf(email: string, password: string): Promise<{ id: string } | null> {
    // Made by the first login of a thread. It is compared with when there is no such user, so that both cases take the same time.
    this.#dummyHash ??= this.#auth.hashPassword(randomUUID()).catch((error) => {
      // Too many passwords wait just now: a later login makes it.
      this.#dummyHash = undefined
      throw error
    })
    const dummyHash = await this.#dummyHash
    const user = await this.#db.queryOne<{ id: string; password_hash: string }>(
      'SELECT id, password_hash FROM users WHERE email = $1',
      [email],
    )
    const isRight = await this.#auth.verifyPassword(password, user?.password_hash ?? dummyHash)
    return isRight ? user : null
  }
}
