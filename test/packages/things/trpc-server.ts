import { initTRPC } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'

export default () => {
  const t = initTRPC.create()
  const router = t.router({ loom: t.procedure.query(() => 'woven') })
  return async () => {
    const req = new Request('http://a.example/trpc/loom')
    return (await fetchRequestHandler({ endpoint: '/trpc', req, router, createContext: () => ({}) })).json()
  }
}
