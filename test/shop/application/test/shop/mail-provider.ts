import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider of e-mails that fails at first. */
export async function mailProvider(failures: number) {
  const sent: { to: string; text: string }[] = []
  let calls = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const isDown = calls++ < failures
    if (!isDown) sent.push(JSON.parse(Buffer.concat(chunks).toString()))
    response.writeHead(isDown ? 503 : 202).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sent,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
