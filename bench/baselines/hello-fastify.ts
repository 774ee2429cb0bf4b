// Fastify with the handler in its own thread, in its fastest configuration that sends the same answer and headers: no logger, no hooks,
// and a response schema, from which Fastify compiles a serializer.
import { randomUUID } from 'node:crypto'
import { fastify } from 'fastify'
import { announceReady, host, port } from './serve.ts'

const answer = {
  type: 'object',
  properties: { success: { type: 'boolean' }, data: { type: 'object', properties: { hello: { type: 'string' } } } },
}

const app = fastify({
  logger: false,
  genReqId: (request) => (request.headers['x-request-id'] as string | undefined) ?? randomUUID(),
})

app.get<{ Params: { name: string } }>('/hello/:name', { schema: { response: { 200: answer } } }, (request, reply) => {
  reply.header('x-request-id', request.id)
  reply.header('x-content-type-options', 'nosniff')
  reply.send({ success: true, data: { hello: request.params.name } })
})

void app.listen({ host, port }).then(announceReady)
