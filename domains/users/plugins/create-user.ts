import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DbError, type HttpContext, Plugin, type Tools } from '#heddle'

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

/** `POST /users`: signs a user up. The database decides whether an e-mail is taken: a lookup before the insert could be overtaken. */
export default class CreateUser extends Plugin {
  #auth
  #bus
  #db
  #http

  constructor({ auth, db, event_bus, http }: Tools) {
    super()
    this.#auth = auth
    this.#bus = event_bus
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/users', 'POST', this.create, { body: newUser, tags: ['users'], summary: 'Sign up' })
  }

  async create({ name, email, password }: z.infer<typeof newUser>, context: HttpContext) {
    const user = { id: randomUUID(), name, email, created_at: new Date().toISOString() }
    const passwordHash = await this.#auth.hashPassword(password)
    try {
      await this.#db.execute(
        'INSERT INTO users (id, name, email, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)',
        [user.id, name, email, passwordHash, user.created_at],
      )
    } catch (error) {
      if (!(error instanceof DbError) || error.kind !== 'unique_violation') throw error
      context.setStatus(409)
      return { success: false, error: 'This e-mail is taken' }
    }
    await this.#bus.publish('user.created', { id: user.id, name, email })
    context.setStatus(201)
    return { success: true, data: user }
  }
}
