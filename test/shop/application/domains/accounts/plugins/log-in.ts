import { randomUUID } from 'node:crypto'
import { DbError, type HttpContext, HttpError, Plugin, type Tools } from 'heddle'
import { z } from 'zod'

const credentials = z.object({
  email: z.email().transform((email) => email.toLowerCase()),
  password: z.string().min(8).max(200),
})
type Credentials = z.infer<typeof credentials>

const TRIES_PER_MINUTE = 5

interface Account {
  id: string
  password_hash: string
  role: string
}

/** `POST /accounts` and `POST /login`: both answer with a token, which says the role. */
export default class LogIn extends Plugin {
  #auth
  #db
  #http
  #state
  /** Whoever registers with it may do everything: set it before the service is reachable. */
  #adminEmail

  constructor({ auth, config, db, http, state }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
    this.#state = state
    this.#adminEmail = config.get('SHOP_ADMIN_EMAIL', { default: '' })
  }

  override onBoot() {
    const schemas = { body: credentials, query: z.object({}) }
    this.#http.addEndpoint('/accounts', 'POST', this.register, { ...schemas, throws: { 409: 'The e-mail is taken' } })
    this.#http.addEndpoint('/login', 'POST', this.logIn, {
      ...schemas,
      throws: { 401: 'Wrong e-mail or password', 429: 'Too many tries' },
    })
  }

  async register({ email, password }: Credentials, context: HttpContext) {
    const id = randomUUID()
    const role = email === this.#adminEmail ? 'admin' : 'customer'
    const hash = await this.#auth.hashPassword(password)
    try {
      await this.#db.execute(
        'INSERT INTO accounts (id, email, password_hash, role, created_at) VALUES ($1, $2, $3, $4, $5)',
        [id, email, hash, role, new Date()],
      )
    } catch (error) {
      if (error instanceof DbError && error.kind === 'unique_violation') throw new HttpError(409, 'The e-mail is taken')
      throw error
    }
    context.setStatus(201)
    return { success: true, data: { id, role, token: await this.#auth.createToken({ sub: id, role }) } }
  }

  async logIn({ email, password }: Credentials) {
    const options = { namespace: 'accounts.tries', ttlMs: 60_000 }
    if ((await this.#state.increment(email, 1, options)) > TRIES_PER_MINUTE) {
      throw new HttpError(429, 'Too many tries', { headers: { 'retry-after': '60' } })
    }
    const account = await this.#db.queryOne<Account>('SELECT id, password_hash, role FROM accounts WHERE email = $1', [
      email,
    ])
    if (account === null || !(await this.#auth.verifyPassword(password, account.password_hash))) {
      throw new HttpError(401, 'Wrong e-mail or password')
    }
    return { success: true, data: { token: await this.#auth.createToken({ sub: account.id, role: account.role }) } }
  }
}
