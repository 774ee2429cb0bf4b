import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/**
 * The system's error code for listening on an address (`EADDRINUSE` for example); undefined when the address is free. Connections in
 * TIME_WAIT that an earlier process has left do not count.
 */
export function addressFault(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}

/** State of a listening socket in the kernel's tables. */
const LISTENING = '0A'

/** Inodes of the sockets that listen on a port, on any address; none where the system does not tell. Source: proc(5), /proc/net/tcp. */
export function listeningSockets(port: number): string[] {
  const inodes: string[] = []
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const row of rowsOf(table)) {
      const [, local, , state, , , , , , inode] = row.trim().split(/\s+/)
      const isPort = Number.parseInt(local?.split(':').at(-1) ?? '', 16) === port
      if (isPort && state === LISTENING && inode !== undefined) inodes.push(inode)
    }
  }
  return inodes
}

function rowsOf(table: string): string[] {
  try {
    return readFileSync(table, 'utf8').split('\n').slice(1)
  } catch {
    return []
  }
}
