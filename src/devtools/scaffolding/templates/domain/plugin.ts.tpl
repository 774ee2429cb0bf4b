import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DbError, plugin } from 'heddle'

const options = {
  body: z.object({ name: z.string().trim().min(1).max(100) }),
  status: 201,
  tags: ['{{domain}}'],
  summary: 'Add {{a}}',
}

/** `POST {{path}}`: adds {{a}} and publishes the event `{{event}}`, in one transaction. */
export default plugin(({ db, http }) => {
  http.post('{{path}}', options, async ({ name }, context) => {
    const id = randomUUID()
    try {
      await db.transaction(async (tx) => {
        await tx.execute('INSERT INTO {{table}} (id, name, created_at) VALUES ($1, $2, $3)', [id, name, new Date()])
        await tx.publish('{{event}}', { id, name })
      })
    } catch (error) {
      // The database decides whether a name is taken: a lookup before the insert could be overtaken by another request.
      if (!(error instanceof DbError) || error.kind !== 'unique_violation') throw error
      context.setStatus(409)
      return { success: false, error: 'There is {{a}} of this name already' }
    }
    return { success: true, data: { id, name } }
  })
})
