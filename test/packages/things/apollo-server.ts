import { ApolloServer } from '@apollo/server'

export default () => {
  const typeDefs = 'type Query { loom: String }'
  const server = new ApolloServer({ typeDefs, resolvers: { Query: { loom: () => 'woven' } } })
  server.startInBackgroundHandlingStartupErrorsByLoggingAndFailingAllRequests()
  return async () => (await server.executeOperation({ query: '{ loom }' })).body
}
