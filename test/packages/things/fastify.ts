import fastify from 'fastify'

export default () => {
  const app = fastify()
  app.get('/looms/:id', (request) => request.params)
  return async () => (await app.inject('/looms/1')).json()
}
