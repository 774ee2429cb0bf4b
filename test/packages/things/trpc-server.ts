import { initTRPC } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import type { Mount } from './plugins/use-package.ts'

export default (_: unknown, mount: Mount) => {
  const t = initTRPC.create()
  const router = t.router({ loom: t.procedure.query(() => 'woven') })
  const ask = mount(
    (req) => fetchRequestHandler({ endpoint: '/mounted', req, router, createContext: () => ({}) }),
    '/loom',
  )
  return async () => (await ask()).json()
}
