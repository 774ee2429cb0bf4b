import { z } from 'zod'
import { type Data, type HttpContext, plugin } from '#heddle'

const body = z.object({
  email: z.string(),
  password: z.string(),
  motto: z.string().meta({ secret: true }).optional(),
  owner: z.object({ city: z.string(), birthday: z.string().meta({ secret: true }) }).optional(),
})

export default plugin(({ http, db, event_bus }) => {
  http.addEndpoint('/accounts/:reset_token', 'POST', open, { body })
  event_bus.subscribe('account.opened', greet)

  async function open({ email, password, motto, owner }: Data, context: HttpContext) {
    await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO accounts (email, motto, phrase, password_hash) VALUES ($1, $2, $3, $4)', [
        email,
        owner.city,
        motto,
        `hash of ${password}`,
      ])
      await tx.publish('account.opened', { email, motto })
    })
    context.setStatus(201)
    return { email, access_token: 'the-new-token', said: motto, long: 'x'.repeat(5000) }
  }

  function greet() {}
})
