import { HttpError, plugin } from 'heddle'

export default plugin(({ http }) => {
  http.get('/hello/:name', { tags: ['hello'], summary: 'Greets by name' }, ({ name }) => {
    if (name === 'nobody') throw new HttpError(404, 'There is nobody to greet')
    return { success: true, data: { hello: name } }
  })
})
