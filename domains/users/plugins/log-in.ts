import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type HttpContext, Plugin, type Tools } from '#heddle'

const NAMESPACE = 'login-attempts'

const credentials = z.object({ email: z.email().max(254).toLowerCase(), password: z.string() })

/** `POST /login`: a token for an e-mail and its password. Neither the response nor its duration shows whether the e-mail is known. */
export default class LogIn extends Plugin {
  #auth
  #db
  #http
  #state
  #maxAttempts
  #windowMs
  #dummyHash: Promise<string> | undefined

  constructor({ auth, config, db, http, state }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
    this.#state = state
    this.#maxAttempts = config.get('LOGIN_MAX_ATTEMPTS', { default: 5 })
    this.#windowMs = config.get('LOGIN_WINDOW_MS', { default: 60_000 })
  }

  override onBoot() {
    this.#http.addEndpoint('/login', 'POST', this.logIn, { body: credentials, tags: ['users'], summary: 'Log in' })
  }

  async logIn({ email, password }: z.infer<typeof credentials>, context: HttpContext) {
    const attempts = await this.#state.increment(email, 1, { namespace: NAMESPACE, ttlMs: this.#windowMs })
    if (attempts > this.#maxAttempts) {
      context.setStatus(429)
      context.setHeader('retry-after', String(Math.ceil(this.#windowMs / 1000)))
      return { success: false, error: 'Too many attempts, try again later' }
    }
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
    if (user === null || !isRight) {
      context.setStatus(401)
      return { success: false, error: 'Wrong e-mail or password' }
    }
    await this.#state.delete(email, { namespace: NAMESPACE })
    return { success: true, data: { token: await this.#auth.createToken({ sub: user.id }) } }
  }
}
