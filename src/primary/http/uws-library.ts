// uWebSockets.js as the listener wants a library.
import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket, us_socket_context_t } from 'uWebSockets.js'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../../core/errors/description.ts'
import { addressOfBytes } from '../../core/http/network.ts'
import { statusLine } from './exchange.ts'
import type {
  ClientResponse,
  HttpApp,
  HttpLibrary,
  RequestHandlers,
  SocketHandlers,
  SocketUserData,
} from './library.ts'
import { keepIdle } from './uws-idle.ts'

/** A WebSocket whose client is silent for this long is closed; it is pinged before. */
export const SOCKET_IDLE_SEC = 120
/**
 * The library keeps back what fits here until it has read all that came with the request, and would run a request behind it first. What
 * is longer it sends at once.
 */
const HELD_BACK_BYTES = 16_384
/** White space behind JSON is a part of it (RFC 8259, section 2). */
const PADDING = ' '.repeat(HELD_BACK_BYTES)
/** The library ends the line that we write the body with. */
const LINE_END_BYTES = 2
/** The request that holds the cork is made again so long after its connection was lost, milliseconds. */
const HOLD_AGAIN_MS = 100

/** The pages of the library are shorter. */
const PAGE_MAX_BYTES = 256
const SHORT_JSON_TYPE = 'application/json'

const require = createRequire(import.meta.url)

/** The library's own types leave these out. */
interface Library {
  _cfg(option: 'silent'): void
  App(): LibraryApp
  us_listen_socket_close(socket: us_listen_socket): void
  us_socket_local_port(socket: us_listen_socket): number
}

type LibraryApp = TemplatedApp & {
  filter(onChange: (res: HttpResponse, change: number) => void): LibraryApp
  listen(host: string, port: number, flags: number, done: (socket: us_listen_socket | false) => void): LibraryApp
}

/**
 * Loads uWebSockets.js, and late: it reads its limits from the environment when it loads. This file alone loads it.
 * @param keepAliveMs how long a connection is kept that waits for its next request. @returns whether it is
 * @throws where it has no binary for the platform
 */
export async function loadUws(keepAliveMs: number): Promise<{ library: HttpLibrary; isKept: boolean }> {
  const { library: own, isKept } = await loadBinary(keepAliveMs)
  own._cfg('silent')
  return { library: { name: 'uWebSockets.js', isStrict: false, createApp: () => new UwsApp(own), refuse }, isKept }
}

interface Loaded {
  readonly library: Library
  readonly isKept: boolean
}

/** Version 20.51 where it loads, which is up to Node 23, else the binary of 20.69, of which the package for this Node alone is installed. */
async function loadBinary(keepAliveMs: number): Promise<Loaded> {
  const { platform, arch, versions } = process
  const major = versions.node.split('.')[0]
  const name = `@uwsjs/${platform}-${arch}-${major}`
  try {
    const library = (await import('uWebSockets.js')).default as unknown as Library
    return (
      loadChanged(createRequire(require.resolve('uWebSockets.js')), name, keepAliveMs) ?? { library, isKept: false }
    )
  } catch {
    // What is told is why the newer one does not load.
  }
  try {
    const library = require(name) as Library
    return loadChanged(require, name, keepAliveMs) ?? { library, isKept: false }
  } catch (error) {
    const wanted = /version `GLIBC_([\d.]+)' not found/.exec(messageOf(error))?.[1]
    if (wanted !== undefined)
      throw new Error(
        `its binary for Node ${major} needs glibc ${wanted} or newer, as in Debian 13 and Ubuntu 24.04; the one for Node 22 does not`,
      )
    // npm installs it for the Node that it runs on itself; in `npm exec` that is the one of node_modules/.bin.
    const fix = "if npm ran on another Node, npm exec -c 'npm install' adds it"
    throw new Error(`it has no binary for Node ${major} on ${platform} ${arch} that loads; ${fix}`)
  }
}

/**
 * The answers of the library to what it cannot read name it and its version, and nothing in it changes them. They are as long as the ones that
 * stand for them here: `connection: close` ends them.
 */
const OWN_PAGES: readonly (readonly [status: string, head: string, error: string])[] = [
  ['505 HTTP Version Not Supported', `content-type: ${SHORT_JSON_TYPE}\r\n`, 'The service speaks HTTP/1.1 alone'],
  ['431 Request Header Fields Too Large', `content-type: ${SHORT_JSON_TYPE}\r\n`, 'The headers are too large'],
  // There is no room for a type.
  ['400 Bad Request', '', 'Malformed request'],
]
const MARK = Buffer.from('uWebSockets/20 Server</i>')

/** Puts our pages in place of the library's. False where they are not as they are known. */
function replacePages(binary: Buffer): boolean {
  return OWN_PAGES.every(([status, head, error]) => {
    const at = binary.indexOf(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n<h1>`)
    const length = at < 0 ? 0 : binary.indexOf(MARK, at) + MARK.byteLength - at
    const code = status.slice(0, 4)
    const page = `HTTP/1.1 ${code}\r\nconnection: close\r\n${head}\r\n${JSON.stringify({ success: false, error })}`
    if (page.length > length || length > PAGE_MAX_BYTES) return false
    binary.write(page.padEnd(length), at, 'latin1')
    return true
  })
}

/** Loads the binary with our pages and our time for idle connections. Null where its copy can be put nowhere. */
function loadChanged(from: NodeJS.Require, name: string, keepAliveMs: number): Loaded | null {
  const binary = readFileSync(from.resolve(`${name}/uws.node`))
  const isKept = keepIdle(binary, keepAliveMs)
  if (!replacePages(binary)) return null
  for (const place of [tmpdir(), '/dev/shm', process.cwd()]) {
    let folder: string | undefined
    try {
      folder = mkdtempSync(join(place, 'heddle-uws-'))
      const file = join(folder, 'uws.node')
      writeFileSync(file, binary, { mode: 0o500, flag: 'wx' })
      const loaded = { exports: {} }
      process.dlopen(loaded, file)
      return { library: loaded.exports as Library, isKept }
    } catch {
      // A file system that takes no files, or runs none.
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    }
  }
  return null
}

class UwsApp implements HttpApp {
  readonly #app: LibraryApp
  readonly #library: Library
  #socket: us_listen_socket | null = null
  /** Null while there are no WebSockets. */
  #holder: CorkHolder | null = null

  constructor(library: Library) {
    this.#library = library
    this.#app = library.App()
  }

  serve({ onRequest, onConnection }: RequestHandlers): void {
    this.#app.any('/*', onRequest)
    const onChange = (res: HttpResponse, change: number): void => {
      const peer = (): string => addressOfBytes(new Uint8Array(res.getRemoteAddress()))
      if (!onConnection(change, peer)) res.close()
    }
    this.#app.filter(onChange)
  }

  serveSockets({ limitBytes, onHandshake, onGone, onFault }: SocketHandlers): void {
    const holder = new CorkHolder(this.#library)
    this.#holder = holder
    const guard = (work: () => void): void => {
      try {
        work()
      } catch (error) {
        // Thrown into the library, the error would end the process.
        onFault(error)
      }
    }
    this.#app.ws<SocketUserData>('/*', {
      // A message beyond the limit closes the socket with a code. Far beyond it the library cuts the socket off without one.
      maxPayloadLength: 2 * limitBytes,
      // `ClientSocket` counts it.
      maxBackpressure: 0,
      idleTimeout: SOCKET_IDLE_SEC,
      sendPingsAutomatically: true,
      upgrade: (res: HttpResponse, req: HttpRequest, own: us_socket_context_t) =>
        onHandshake(res, req, { own, cork: (write) => holder.cork(write) }),
      open: (ws) => guard(() => ws.getUserData().socket.opened(ws)),
      message: (ws, message, isBinary) =>
        guard(() => ws.getUserData().socket.received(new Uint8Array(message), isBinary)),
      drain: (ws) => guard(() => ws.getUserData().socket.drained()),
      close: (ws, code, reason) => {
        guard(() => ws.getUserData().socket.closed(code, Buffer.from(reason).toString()))
        onGone()
      },
    })
  }

  /** It always shares a port with whoever else shares it: whether that is wanted, the caller has to see to. */
  async listen(host: string, port: number): Promise<number> {
    const chosen = port === 0 ? this.#freePort(host) : port
    if (chosen === 0) return 0
    // The library calls back at once.
    this.#app.listen(host, chosen, 0, (socket) => {
      this.#socket = socket === false ? null : socket
    })
    return this.#socket === null ? 0 : chosen
  }

  /** A port that nobody listens on; 0 when there is none. The library makes a port that it chose itself unfit to be listened on again. */
  #freePort(host: string): number {
    let port = 0
    this.#app.listen(host, 0, 0, (socket) => {
      if (socket === false) return
      port = this.#library.us_socket_local_port(socket)
      this.#library.us_listen_socket_close(socket)
    })
    return port
  }

  shut(): void {
    if (this.#socket !== null) this.#library.us_listen_socket_close(this.#socket)
    this.#socket = null
  }

  close(): void {
    this.#holder?.close()
    this.#app.close()
  }
}

/**
 * Has the cork while another connection becomes a WebSocket: a request of the process to itself that is never answered.
 *
 * The library turns a request into a WebSocket by shrinking its memory in place. At the end of a `cork` that took the cork itself it takes
 * the WebSocket for the request still, since the address is the same, and reads the request's flags from behind its end: where something
 * else has been put there meanwhile, the client may be cut off right after the handshake. Within the cork of another connection it does
 * not look. (uNetworking/uWebSockets#1929, fixed in 20.79; 20.51 has it, 20.69 does not show it.)
 */
class CorkHolder {
  readonly #library: Library
  readonly #app: LibraryApp
  /** Only its own request is held. */
  readonly #path = `/${randomUUID()}`
  #response: HttpResponse | null = null
  #client: Socket | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(library: Library) {
    this.#library = library
    this.#app = library.App()
    this.#app.get(this.#path, (res) => {
      this.#response = res.onAborted(() => {
        this.#response = null
      })
    })
    this.#hold()
  }

  /** In the moment before the request is there, the library writes uncorked, which is as safe: it says so on standard error. */
  cork(write: () => void): void {
    if (this.#response === null) write()
    else this.#response.cork(write)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#client?.removeAllListeners('close').destroy()
    this.#app.close()
  }

  #hold(): void {
    this.#app.listen('127.0.0.1', 0, 0, (listening) => {
      if (listening === false) return this.#holdAgain()
      const client = connect(this.#library.us_socket_local_port(listening), '127.0.0.1').unref()
      this.#client = client
      client.write(`GET ${this.#path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
      client.on('connect', () => this.#library.us_listen_socket_close(listening))
      client.on('error', () => this.#library.us_listen_socket_close(listening))
      client.on('close', () => this.#holdAgain())
    })
  }

  #holdAgain(): void {
    this.#timer = setTimeout(() => this.#hold(), HOLD_AGAIN_MS).unref()
  }
}

/** The connection is closed before this returns: the library would go on to the bytes behind the request, which may be a part of it. */
function refuse(res: ClientResponse, status: number, head: string, body: string | null): void {
  try {
    if (body === null) return
    const padded = body + PADDING
    const length = Buffer.byteLength(padded) + LINE_END_BYTES
    res.writeStatus(statusLine(status))
    // `end` is of no use: it would not close the connection at once, and nothing could close it afterwards.
    res.writeHeader(
      'x-content-type-options',
      `nosniff\r\n${head}connection: close\r\ncontent-length: ${length}\r\n\r\n${padded}`,
    )
  } finally {
    res.close()
  }
}
