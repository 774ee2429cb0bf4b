import { Hono } from 'hono'

export default () => {
  const app = new Hono().get('/looms/:id', (context) => context.json({ id: context.req.param('id') }))
  return async () => (await app.fetch(new Request('http://a.example/looms/1'))).json()
}
