import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DbError, networkOf, plugin } from '#heddle'
import { Attempts } from '../attempts.ts'

const newUser = z.object({
  name: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not hold control characters'),
  email: z.email().max(254).toLowerCase(),
  password: z.string().min(8).max(128),
})

const created = z.object({
  success: z.literal(true),
  data: z.object({ id: z.string(), name: z.string(), email: z.string(), created_at: z.string() }),
})

/** `POST /users`: signs a user up, once for each `Idempotency-Key`, and so many from one address. The database decides whether an e-mail is taken: a lookup before the insert could be overtaken. */
export default plugin(({ auth, config, http, state }) => {
  const attempts = new Attempts(state, {
    namespace: 'signups',
    max: config.get('SIGNUP_MAX_PER_ADDRESS', { default: 20 }),
    windowMs: config.get('SIGNUP_WINDOW_MS', { default: 60_000 }),
  })

  http.post(
    '/users',
    {
      body: newUser,
      response: created,
      status: 201,
      throws: { 409: 'The e-mail is taken', 429: 'Too many sign-ups from this address' },
      idempotency: 'optional',
      // Who signs up is nobody yet, whatever the hooks of an application know.
      idempotencyScope: () => 'sign-up',
      tags: ['users'],
      summary: 'Sign up',
      description: 'Creates an account. Its e-mail is unique.',
    },
    async ({ name, email, password }, context) => {
      // A hash costs a core a tenth of a second: this limits sign-ups per address.
      if (!(await attempts.take(networkOf(context.ip)))) return attempts.refuse(context)
      const user = { id: randomUUID(), name, email, created_at: new Date().toISOString() }
      const passwordHash = await auth.hashPassword(password)
      try {
        return await context.commit(async (tx) => {
          await tx.execute(
            'INSERT INTO users (id, name, email, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)',
            [user.id, name, email, passwordHash, user.created_at],
          )
          await tx.publish('user.created', { id: user.id, name, email })
          return { success: true, data: user }
        })
      } catch (error) {
        if (!(error instanceof DbError) || error.kind !== 'unique_violation') throw error
        context.setStatus(409)
        return { success: false, error: 'This e-mail is taken' }
      }
    },
  )
})
