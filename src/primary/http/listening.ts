// Listens on an address by the library that this machine can load: is it free, and who has it?
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { endianness } from 'node:os'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { networkOf, plainAddress } from '../../core/http/network.ts'
import { turn } from '../../core/schedule/waiting.ts'
import { AllowedHosts } from './access.ts'
import type { HttpApp, HttpLibrary } from './library.ts'
import { LIBRARY_IDLE_MS } from './uws-idle.ts'
import { loadUws } from './uws-library.ts'

/**
 * The system's error code for listening on an address (`EADDRINUSE` for example); undefined when the address is free. Connections in
 * TIME_WAIT that an earlier process has left do not count.
 */
function addressFault(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}

/** States of a socket in the kernel's tables. */
const LISTENING = '0A'
export const ESTABLISHED = '01'

/** The sockets at a port of this machine, on any address; none where the system does not tell. Source: proc(5), /proc/net/tcp. */
export function socketsAt(port: number): { state: string; inode: string; remote: string }[] {
  const sockets: { state: string; inode: string; remote: string }[] = []
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const row of textOf(table).split('\n').slice(1)) {
      const [, local, remote = '', state, , , , , , inode] = row.trim().split(/\s+/)
      const isPort = Number.parseInt(local?.split(':').at(-1) ?? '', 16) === port
      if (isPort && state !== undefined && inode !== undefined) sockets.push({ state, inode, remote })
    }
  }
  return sockets
}

/** `0100007F:1F90` as an address: words of four bytes, each in the order of the machine. */
function addressOfHex(remote: string): string {
  const bytes = Buffer.from(remote.split(':')[0]!, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.byteLength === 4) return bytes.join('.')
  const groups = Array.from({ length: bytes.byteLength / 2 }, (_, n) => bytes.readUInt16BE(2 * n).toString(16))
  return plainAddress(groups.join(':'))
}

/** Inodes of the sockets that listen on a port. */
const listeningSockets = (port: number): string[] =>
  socketsAt(port).flatMap(({ state, inode }) => (state === LISTENING ? [inode] : []))

/** Why an address cannot be listened on: the HTTP library only says that it cannot. */
async function listenFault(host: string, port: number, name: 'HTTP' | 'SYSTEM'): Promise<string> {
  const code = await addressFault(host, port)
  switch (code) {
    case 'EADDRINUSE': {
      const holder = holderOf(port)
      const who = holder === undefined ? 'another process' : `${holder.command} (process ${holder.pid})`
      return `the port is taken by ${who}. Stop it, or choose another port: ${name}_PORT=${port === 65_535 ? 8000 : port + 1}, or 0 for any free one`
    }
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${host}. ${name}_HOST=127.0.0.1 serves this machine alone, 0.0.0.0 everybody`
    case 'EACCES':
      return `this user may not listen on port ${port}. Choose one from 1024 on: ${name}_PORT=8000`
    case 'ENOTFOUND':
      return `there is no host ${host}. ${name}_HOST is an address of this machine`
    default:
      return `the address is taken or not ours${code === undefined ? '' : ` (${code})`}`
  }
}

/** The process that listens on a port, as far as Linux tells this user. Source: proc(5), /proc/net/tcp and /proc/[pid]/fd. */
function holderOf(port: number): { pid: number; command: string } | undefined {
  const sockets = new Set(listeningSockets(port).map((inode) => `socket:[${inode}]`))
  if (sockets.size === 0) return undefined
  for (const pid of namesIn('/proc').filter((name) => /^\d+$/.test(name))) {
    if (!namesIn(`/proc/${pid}/fd`).some((fd) => sockets.has(targetOf(`/proc/${pid}/fd/${fd}`)))) continue
    // The rest of a command line may hold secrets.
    const words = textOf(`/proc/${pid}/cmdline`)
      .split('\0')
      .filter((word) => word !== '')
    return { pid: Number(pid), command: commandOf(words) }
  }
  return undefined
}

/** The name of the program and of the script that it runs. */
function commandOf(words: readonly string[]): string {
  const script = words.slice(1).find((word) => /\.[cm]?[jt]s$/.test(word))
  return [words[0]?.split('/').at(-1) || 'a process', ...(script === undefined ? [] : [script])].join(' ')
}

/** The files of another user's process cannot be read, and a process that has ended has none: then the holder is not named. */
function readOr<T>(nothing: T, read: () => T): T {
  try {
    return read()
  } catch {
    return nothing
  }
}

const textOf = (file: string): string => readOr('', () => readFileSync(file, 'utf8'))
const namesIn = (folder: string): string[] => readOr([], () => readdirSync(folder))
const targetOf = (link: string): string => readOr('', () => readlinkSync(link))

/**
 * Before anything starts, and so before a migration is applied: does nobody else listen on the ports? A port that is shared tells nobody that a
 * stranger shares it, too.
 * @param joins other processes of the same guardian listen on HTTP_PORT already
 * @throws HTTP_LISTEN
 */
export async function requireFreePorts(
  settings: Pick<Settings, 'httpHost' | 'httpPort' | 'httpReusePort' | 'systemHost' | 'systemPort'>,
  joins: boolean,
): Promise<void> {
  const { httpHost, httpPort, httpReusePort, systemHost, systemPort = 0 } = settings
  // With HTTP_REUSE_PORT another supervisor shares it on purpose.
  if (!joins && !httpReusePort) await requireFree(httpHost, httpPort, 'HTTP')
  await requireFree(systemHost, systemPort, 'SYSTEM')
}

async function requireFree(host: string, port: number, name: 'HTTP' | 'SYSTEM'): Promise<void> {
  if (port === 0 || (await addressFault(host, port)) === undefined) return
  throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${host}:${port}: ${await listenFault(host, port, name)}`)
}

interface Choice {
  readonly library: HttpLibrary
  /** Why uWebSockets.js does not serve; null when it does, or was not asked for. */
  readonly missing: string | null
  /** What it does otherwise than the default says; null when it does nothing. */
  readonly shortfall: string | null
}

const KEEP_ALIVE_DEFAULT_MS = 75_000
const SHORTFALL = `uWebSockets.js closes idle connections after 8 to 12 s here, not after ${KEEP_ALIVE_DEFAULT_MS} ms. If a proxy in front keeps them longer, set HTTP_KEEP_ALIVE_MS: HTTP_LISTENER=auto takes node:http then`
const WHATEVER = 'whatever HTTP_KEEP_ALIVE_MS says'
const CLOSES_EARLY = `it closes idle connections after 8 to 12 s, ${WHATEVER}: the runtime cannot change that in this binary`
const CLOSES_LATE = `it keeps idle connections for ${LIBRARY_IDLE_MS} ms at least, ${WHATEVER}`

/**
 * @param wanted `HTTP_LISTENER`
 * @param keepAliveMs `HTTP_KEEP_ALIVE_MS`; undefined where it is not set
 * @throws HTTP_LISTEN when uWebSockets.js is asked for and does not load, or cannot keep connections as long as is asked for
 */
export async function chooseLibrary(wanted: 'auto' | 'uws' | 'node', keepAliveMs?: number): Promise<Choice> {
  const loadNode = async (missing: string | null): Promise<Choice> => {
    const { loadNode: load } = await import('./node/node-library.ts')
    return { library: load(keepAliveMs ?? KEEP_ALIVE_DEFAULT_MS), missing, shortfall: null }
  }
  const instead = (missing: string, fault: string): Promise<Choice> => {
    if (wanted === 'auto') return loadNode(missing)
    throw new HeddleError('HTTP_LISTEN', `HTTP_LISTENER=uws, and ${fault}`)
  }
  const notSo = (missing: string): Promise<Choice> => {
    const fix = 'set HTTP_LISTENER=auto or node, or leave HTTP_KEEP_ALIVE_MS out'
    return instead(missing, `HTTP_KEEP_ALIVE_MS=${keepAliveMs}: ${missing}; ${fix}`)
  }
  if (wanted === 'node') return loadNode(null)
  if (keepAliveMs !== undefined && keepAliveMs < LIBRARY_IDLE_MS) return notSo(CLOSES_LATE)
  let loaded: Awaited<ReturnType<typeof loadUws>>
  try {
    loaded = await loadUws(keepAliveMs ?? KEEP_ALIVE_DEFAULT_MS)
  } catch (error) {
    const missing = messageOf(error).split('\n')[0]!
    return instead(missing, `uWebSockets.js does not load here: ${missing}`)
  }
  const { library, isKept } = loaded
  if (!isKept && keepAliveMs !== undefined) return notSo(CLOSES_EARLY)
  return { library, missing: null, shortfall: isKept ? null : SHORTFALL }
}

export interface ListenSocketOptions {
  /** `HTTP` for the public address, `SYSTEM` for the one of `/system` alone: their variables begin so. */
  readonly name: 'HTTP' | 'SYSTEM'
  readonly host: string
  readonly port: number
  /** No other process may listen on the port. */
  readonly isExclusive: boolean
  readonly allowedHosts: readonly string[]
}

/** One address that the listener listens on, with its connections. */
export class ListenSocket {
  readonly app: HttpApp
  readonly hosts: AllowedHosts
  readonly isSystem: boolean
  readonly #options: ListenSocketOptions
  #port = 0
  #state: 'shut' | 'opening' | 'open' | 'closed' = 'shut'

  constructor(app: HttpApp, options: ListenSocketOptions) {
    this.#options = options
    this.app = app
    this.hosts = new AllowedHosts(options.allowedHosts, options.host)
    this.isSystem = options.name === 'SYSTEM'
  }

  /** Binds the port and resolves with it. @throws HTTP_LISTEN when the port is taken */
  async open(): Promise<number> {
    const { name, host, port, isExclusive } = this.#options
    this.#port = port
    // The library's flag for an exclusive port would refuse a port for a minute after the end of the process that had it.
    const mayListen = !isExclusive || port === 0 || (await addressFault(host, port)) === undefined
    if (!mayListen || !(await this.#listen())) {
      const fault = await listenFault(host, port, name)
      throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${host}:${port}: ${fault}`)
    }
    return this.#port
  }

  /** Listens again after `shut`. False when the port has been taken meanwhile. */
  async reopen(): Promise<boolean> {
    return this.#state !== 'shut' || (await this.#listen())
  }

  async #listen(): Promise<boolean> {
    const { host, port, isExclusive } = this.#options
    this.#state = 'opening'
    const bound = await this.app.listen(host, this.#port, !isExclusive)
    // Shut or closed meanwhile.
    if (this.#state !== 'opening') {
      this.app.shut()
      return true
    }
    this.#state = bound === 0 ? 'shut' : 'open'
    if (bound !== 0) this.#port = bound
    // Two processes that looked at the same moment would share the port unnoticed.
    const isShared = bound !== 0 && isExclusive && port !== 0 && listeningSockets(bound).length > 1
    if (isShared) this.shut()
    return this.#state === 'open'
  }

  /** Connections by network; none where the system does not tell. */
  peers(): Map<string, number> {
    const peers = new Map<string, number>()
    const byHex = new Map<string, string>()
    for (const { state, remote } of socketsAt(this.#port)) {
      if (state !== ESTABLISHED) continue
      const hex = remote.slice(0, remote.indexOf(':'))
      const network = byHex.get(hex) ?? networkOf(addressOfHex(hex))
      byHex.set(hex, network)
      peers.set(network, (peers.get(network) ?? 0) + 1)
    }
    return peers
  }

  /** Takes no new connections. */
  shut(): void {
    if (this.#state === 'closed') return
    this.#state = 'shut'
    this.app.shut()
  }

  /** Ends all connections. */
  close(): void {
    if (this.#state === 'closed') return
    this.shut()
    this.#state = 'closed'
    this.app.close()
  }
}

/** A turn of the event loop in which nothing happened, milliseconds. */
const SHORT_TURN_MS = 0.01
const SHORT_TURN_TRIES = 60

/**
 * Resolves right after a short turn of the event loop, under load the shortest of some tries. The library accepts waiting connections
 * once in a turn. The kernel resets a connection that comes between that and the closing of the listen socket.
 */
export async function shortTurn(): Promise<void> {
  let wantedMs = SHORT_TURN_MS
  for (let tries = 0; tries < SHORT_TURN_TRIES; tries++) {
    const startMs = performance.now()
    await turn()
    if (performance.now() - startMs <= wantedMs) return
    // A busy process may have no turn that short, so the limit rises with each try. The last one may take some milliseconds.
    wantedMs *= 1.1
  }
}
