import { randomUUID } from 'node:crypto'
import { DbError, HttpError, plugin } from 'heddle'
import { z } from 'zod'

const credentials = z.object({
  email: z.email().transform((email) => email.toLowerCase()),
  password: z.string().min(8).max(200),
})

const TRIES_PER_MINUTE = 5

interface Account {
  id: string
  password_hash: string
  role: string
}

/** `POST /accounts` and `POST /login`: both answer with a token, which says the role. */
export default plugin(({ auth, config, db, http, state }) => {
  const adminEmail = config.get('SHOP_ADMIN_EMAIL', { default: '' })

  const schemas = { body: credentials }
  http.post(
    '/accounts',
    {
      ...schemas,
      status: 201,
      throws: { 409: 'The e-mail is taken' },
      summary: 'Sign up',
      description: 'Creates an account for an e-mail and a password.',
    },
    async ({ email, password }) => {
      const id = randomUUID()
      const role = email === adminEmail ? 'admin' : 'customer'
      const hash = await auth.hashPassword(password)
      try {
        await db.execute(
          'INSERT INTO accounts (id, email, password_hash, role, created_at) VALUES ($1, $2, $3, $4, $5)',
          [id, email, hash, role, new Date()],
        )
      } catch (error) {
        if (error instanceof DbError && error.kind === 'unique_violation')
          throw new HttpError(409, 'The e-mail is taken')
        throw error
      }
      return { success: true, data: { id, role, token: await auth.createToken({ sub: id, role }) } }
    },
  )
  http.post(
    '/login',
    {
      ...schemas,
      summary: 'Log in',
      description: 'Gives a token for an e-mail and its password.',
      throws: { 401: 'Wrong e-mail or password', 429: 'Too many tries' },
    },
    async ({ email, password }) => {
      const options = { namespace: 'accounts.tries', ttlMs: 60_000 }
      if ((await state.increment(email, 1, options)) > TRIES_PER_MINUTE) {
        throw new HttpError(429, 'Too many tries', { headers: { 'retry-after': '60' } })
      }
      const account = await db.queryOne<Account>('SELECT id, password_hash, role FROM accounts WHERE email = $1', [
        email,
      ])
      if (account === null || !(await auth.verifyPassword(password, account.password_hash))) {
        throw new HttpError(401, 'Wrong e-mail or password')
      }
      return { success: true, data: { token: await auth.createToken({ sub: account.id, role: account.role }) } }
    },
  )
})
