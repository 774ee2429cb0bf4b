import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, type StartOptions, startHeddle } from '../../support/heddle.ts'
import { RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const FOLDERS = ['../sockets/domains', '../files/domains'].map((path) => fileURLToPath(new URL(path, import.meta.url)))

/** A request of every kind that the listener tells apart. */
export const KINDS: readonly (readonly [kind: string, method: string, path: string])[] = [
  ['a route of a lane', 'GET', '/w/echo'],
  ['a route of the primary', 'GET', '/p/echo'],
  ['a route of the system', 'GET', '/system/status'],
  ['a static file', 'GET', '/files/page.txt'],
  ['a HEAD of a file', 'HEAD', '/files/page.txt'],
  ['a method that the path has not', 'PATCH', '/w/say'],
  ['an unsafe method', 'POST', '/w/echo'],
  ['an unsafe method of the system', 'DELETE', '/system/dead-letters/none'],
  ['a stream', 'GET', '/system/logs/stream'],
  ['a WebSocket', 'GET', '/talk/a'],
]

/** A process that has all of them. */
export async function startKinds(
  owner: { after(end: () => Promise<void>): void },
  options: Omit<StartOptions, 'domains'> = {},
): Promise<Heddle> {
  const shelf = temporaryFolder(owner)
  await writeFile(join(shelf, 'page.txt'), 'a page')
  const domains = [SERVING, ...FOLDERS, SYSTEM_ROUTES]
  return startHeddle(owner, { lanes: 1, ...options, domains, env: { SHELF_DIR: shelf, ...options.env } })
}

/** The status of one request; a stream or a socket that opens is dropped. @param path a WebSocket for `/talk/…` */
export async function statusOf(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const connection = await RawConnection.open(port)
  try {
    const all = path.startsWith('/talk/') ? { ...HANDSHAKE, ...headers } : headers
    await connection.send(requestText(method, path, all, method === 'POST' ? '' : undefined))
    // The head alone: what a stream sends has no end.
    return (await connection.response({ isInterim: true }))?.status ?? Number.NaN
  } finally {
    connection.drop()
  }
}
