import { Hono } from 'hono'
import type { Mount } from './plugins/use-package.ts'

export default (_: unknown, mount: Mount) => {
  const app = new Hono().get('/mounted/looms/:id', (context) => context.json({ id: context.req.param('id') }))
  const ask = mount(app, '/looms/1')
  return async () => (await ask()).json()
}
