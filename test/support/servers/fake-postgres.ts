import { createServer, type Socket } from 'node:net'
import type { ServerOwner } from './provide.ts'

/** AuthenticationCleartextPassword, AuthenticationMD5Password. */
const ASK = {
  text: Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]),
  md5: Buffer.from([0x52, 0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4]),
}

export interface FakePostgres {
  readonly port: number
  /** All that clients have sent, as text. */
  heard(): string
}

/** Something that listens where PostgreSQL should, has no TLS, and asks for the password in these ways, one after the other. */
export async function fakePostgres(
  t: Pick<ServerOwner, 'after'>,
  ways: readonly (keyof typeof ASK)[],
): Promise<FakePostgres> {
  let heard = ''
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    const left = [...ways]
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      heard += bytes.toString('latin1')
      // The request for TLS has eight bytes.
      if (bytes.length === 8 && bytes.readInt32BE(4) === 80877103) return void socket.write('N')
      const way = left.shift()
      if (way === undefined) socket.end()
      else socket.write(ASK[way])
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as { port: number }).port, heard: () => heard }
}
