import { plugin } from '#heddle'

export default plugin(({ http }) => {
  http.get('/hello/:name', ({ name }) => ({ success: true, data: { hello: name } }))
})
