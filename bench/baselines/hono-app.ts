// The application of both sides of the case `mount`.
import { Hono } from 'hono'

export function honoApp(): Hono {
  const app = new Hono()
  app.get('/hello/:name', (c) => c.json({ success: true, data: { hello: c.req.param('name') } }))
  app.post('/echo', async (c) => c.json(await c.req.json()))
  return app
}
