import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net'
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js'
import { freePort } from '../support/port.ts'
import type { ServerOwner } from '../support/servers/provide.ts'

/** What services of others answer, as far as the things ask. */
const ANSWERS: readonly (readonly [path: RegExp, answer: object | string])[] = [
  [/^\/hello/, { text: 'hello' }],
  [
    /^\/openai\/chat\/completions/,
    { choices: [{ index: 0, message: { role: 'assistant', content: 'It lifts threads.' } }] },
  ],
  [
    /^\/anthropic\/v1\/messages/,
    { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'It lifts threads.' }] },
  ],
  [/^\/v1\/customers/, { id: 'cus_1', object: 'customer' }],
  [/^\/drive\/v3\/files/, { files: [{ id: '1', name: 'loom' }] }],
  [/^\/looms\/one/, 'woven'],
  [/^\/api\/1\/envelope/, { id: '1' }],
  [/^\/v1\/traces/, {}],
]

/** Small servers of the test's own, where the machine has no real one: HTTP, SMTP, gRPC, and an address at which nobody is. */
export async function startLoopback(owner: ServerOwner): Promise<Record<string, string>> {
  const http = createServer((request, response) => {
    request.resume().on('end', () => {
      const answer = ANSWERS.find(([path]) => path.test(request.url!))?.[1]
      const isText = typeof answer === 'string'
      response.writeHead(answer === undefined ? 404 : 200, {
        'content-type': isText ? 'text/plain' : 'application/json',
      })
      response.end(isText ? answer : JSON.stringify(answer ?? {}))
    })
  })
  const port = async (server: Server): Promise<number> => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    owner.after(async () => void server.close())
    return (server.address() as AddressInfo).port
  }
  owner.after(async () => http.closeAllConnections())
  return {
    TRIAL_HTTP: `http://127.0.0.1:${await port(http)}`,
    TRIAL_SMTP: `smtp://127.0.0.1:${await port(smtpServer())}`,
    TRIAL_GRPC: `127.0.0.1:${await grpcPort(owner)}`,
    TRIAL_NOWHERE: `127.0.0.1:${await freePort()}`,
  }
}

function smtpServer(): Server {
  return createSocketServer((socket) => {
    let isData = false
    socket.on('error', () => {})
    socket.write('220 a.example\r\n')
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (isData && !/(?:^|\r\n)\.\r\n$/.test(text)) return
      const isBegun = !isData && /^DATA/i.test(text)
      isData = isBegun
      socket.write(isBegun ? '354 go on\r\n' : /^QUIT/i.test(text) ? '221 bye\r\n' : '250 woven\r\n')
    })
  })
}

/** Sends back what it gets. */
async function grpcPort(owner: ServerOwner): Promise<number> {
  const server = new GrpcServer()
  const same = (bytes: Buffer): Buffer => bytes
  const path = { requestStream: false, responseStream: false, requestDeserialize: same, requestSerialize: same }
  const service = { Echo: { path: '/Looms/Echo', ...path, responseSerialize: same, responseDeserialize: same } }
  server.addService(service, {
    Echo: (call: { request: Buffer }, done: (error: null, bytes: Buffer) => void) => done(null, call.request),
  })
  owner.after(async () => server.forceShutdown())
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    )
  })
}
