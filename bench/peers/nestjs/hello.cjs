// NestJS on Fastify with the same answer and headers, its logger off. The decorators are called by hand: nothing has to be compiled.
require('reflect-metadata')
const { Controller, Get, Module, Param, Res } = require('@nestjs/common')
const { NestFactory } = require('@nestjs/core')
const { FastifyAdapter } = require('@nestjs/platform-fastify')
const { randomUUID } = require('node:crypto')

class HelloController {
  hello(name, reply) {
    reply.header('x-request-id', reply.request.id)
    reply.header('x-content-type-options', 'nosniff')
    return { success: true, data: { hello: name } }
  }
}
const method = Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello')
Param('name')(HelloController.prototype, 'hello', 0)
Res({ passthrough: true })(HelloController.prototype, 'hello', 1)
Get('hello/:name')(HelloController.prototype, 'hello', method)
Controller()(HelloController)

class AppModule {}
Module({ controllers: [HelloController] })(AppModule)

async function main() {
  const adapter = new FastifyAdapter({
    logger: false,
    genReqId: ({ headers }) => headers['x-request-id'] ?? randomUUID(),
  })
  const app = await NestFactory.create(AppModule, adapter, { logger: false })
  await app.listen(Number(process.env.HTTP_PORT), process.env.HTTP_HOST)
  process.on('SIGTERM', () => process.exit(0))
  process.send?.('ready')
}

void main()
