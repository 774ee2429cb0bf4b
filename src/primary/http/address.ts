import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/**
 * Why the system would not let anybody listen there (`EADDRINUSE` for example); undefined when it would. Connections that a process before
 * has left behind in TIME_WAIT do not count.
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

/** Inodes of the sockets that listen on a port, of whatever address; none where the system does not tell. Source: proc(5), /proc/net/tcp. */
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
