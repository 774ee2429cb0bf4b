import { plugin } from '#heddle'

/** `GET /users/:id`: the public data of a user. */
export default plugin(({ db, http }) => {
  http.get(
    '/users/:id',
    { tags: ['users'], summary: 'A user in public', description: 'What everybody may know of a user.' },
    async ({ id }, context) => {
      const user = await db.queryOne('SELECT id, name, created_at FROM users WHERE id = $1', [id])
      if (user === null) {
        context.setStatus(404)
        return { success: false, error: 'User not found' }
      }
      return { success: true, data: user }
    },
  )
})
