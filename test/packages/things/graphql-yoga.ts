import { createSchema, createYoga } from 'graphql-yoga'
import type { Mount } from './plugins/use-package.ts'

export default (_: unknown, mount: Mount) => {
  const schema = createSchema({
    typeDefs: 'type Query { loom: String }',
    resolvers: { Query: { loom: () => 'woven' } },
  })
  const ask = mount(createYoga({ schema, logging: false, graphqlEndpoint: '/mounted' }), '?query={loom}')
  return async () => (await ask()).json()
}
