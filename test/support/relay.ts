import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A test, or whatever else ends what it has started. */
interface Owner {
  after(end: () => void): void
}

/** A way to a process, whose connections the test can cut, and which it can lead to another process. */
export interface Relay {
  readonly url: string
  /** Ends all connections. @param isAway takes no new ones either, until it is called with false */
  cut(isAway?: boolean): void
  leadTo(port: number): void
}

export async function startRelay(t: Owner, port: number): Promise<Relay> {
  let to = port
  let isCut = false
  const sockets = new Set<Socket>()
  const server = createServer((inward) => {
    if (isCut) return void inward.destroy()
    const outward = connect(to, '127.0.0.1')
    for (const [from, other] of [
      [inward, outward],
      [outward, inward],
    ] as const) {
      sockets.add(from)
      from.on('error', () => other.destroy()).on('close', () => sockets.delete(from) && other.destroy())
      from.pipe(other)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const cut = (isAway = false): void => {
    isCut = isAway
    for (const socket of sockets) socket.destroy()
  }
  t.after(() => {
    cut(true)
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    leadTo: (other) => {
      to = other
    },
  }
}
