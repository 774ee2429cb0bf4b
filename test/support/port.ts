import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A port that nobody listens on. For processes that must agree on one: by itself a process takes any free one. */
export const freePort = (): Promise<number> => portAt(0)

/** The first of several ports in a row that nobody listens on. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await freePort()
    try {
      for (let n = 1; n < count; n++) await portAt(first + n)
      return first
    } catch {
      // One of them is taken, or there are no more.
    }
  }
}

/** Holds a port until the test is over. @returns the port */
export async function takenPort(t: { after(end: () => void): void }): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** @throws when it is taken */
async function portAt(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
