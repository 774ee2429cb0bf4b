import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Below those that the system gives to connections, and above those of well-known services. */
const FIRST = 12_000
const LAST = 32_000

/**
 * A port that nobody listens on, and that no other test is given while this process lives: who gets it may start for half a minute before it
 * listens. For processes that must agree on one: by itself a process takes any free one.
 */
export const freePort = (): Promise<number> => freePorts(1)

/** The first of several such ports in a row. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = randomInt(FIRST, LAST - count)
    try {
      for (let port = first; port < first + count; port++) {
        await claim(port)
        await listenAt(port)
      }
      return first
    } catch {
      // One of them is taken.
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

/**
 * A name that one process of the machine can have, and that the system takes from it when it ends.
 * @throws when another one has it
 */
async function claim(port: number): Promise<void> {
  const server = createServer().listen(`\0heddle-test-port-${port}`).unref()
  await once(server, 'listening')
}

/** @throws when somebody listens there */
async function listenAt(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}
