import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems hand out by themselves: nothing takes it while its server is stopped for a while. */
const PORTS = { from: 12_000, to: 32_000 } as const

/** A port of 127.0.0.1 that nobody listens on. */
export async function serverPort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from))
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
