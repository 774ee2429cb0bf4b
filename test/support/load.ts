import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'

const ANSWER_MS = 20_000

export interface LoadOptions {
  port: number
  path: string
  /** Clients that keep their connection. */
  keepAlive?: number
  /** Clients that open a connection for each request. */
  reconnecting?: number
  /** Time between two requests of one client. */
  everyMs: number
  /** A keep-alive client ends when an answer closes its connection, instead of connecting again. */
  stopsAtClose?: boolean
}

/** What a load has seen so far. A request counts as failed unless it got the whole of an answer with status 200. */
export interface Load {
  readonly answered: number
  /** One line each, the kind of client first. */
  readonly failures: readonly string[]
  readonly closedByAnswer: number
  /** Resolves when the last request has its answer. */
  stop(): Promise<void>
}

interface Counts {
  answered: number
  failures: string[]
  closedByAnswer: number
  isStopped: boolean
}

/** Clients that notice every lost request: no retries, and no connection that closes on a request is forgiven. */
export function startLoad(options: LoadOptions): Load {
  const { keepAlive = 0, reconnecting = 0 } = options
  const counts: Counts = { answered: 0, failures: [], closedByAnswer: 0, isStopped: false }
  const clients = [
    ...Array.from({ length: keepAlive }, () => runClient(options, counts, true)),
    ...Array.from({ length: reconnecting }, () => runClient(options, counts, false)),
  ]
  return {
    get answered() {
      return counts.answered
    },
    get failures() {
      return counts.failures
    },
    get closedByAnswer() {
      return counts.closedByAnswer
    },
    async stop() {
      counts.isStopped = true
      await Promise.all(clients)
    },
  }
}

/** Clients that ask again and again, whatever the answer is. */
export interface Asking {
  /** How often each status came; 0: no answer. */
  readonly statuses: ReadonlyMap<number, number>
  /** Resolves when the last request has its answer. */
  stop(): Promise<void>
}

/** @param ask one request. @returns its status */
export function keepAsking(
  ask: () => Promise<number>,
  { clients, everyMs = 0 }: { clients: number; everyMs?: number },
): Asking {
  const statuses = new Map<number, number>()
  let isStopped = false
  const askAgain = async (): Promise<void> => {
    while (!isStopped) {
      const status = await ask().catch(() => 0)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (everyMs > 0) await setTimeout(everyMs)
    }
  }
  const running = Array.from({ length: clients }, askAgain)
  return {
    statuses,
    async stop() {
      isStopped = true
      await Promise.all(running)
    },
  }
}

async function runClient({ port, path, everyMs, stopsAtClose }: LoadOptions, counts: Counts, keepsAlive: boolean) {
  const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${keepsAlive ? '' : 'connection: close\r\n'}\r\n`
  let socket: Socket | null = null
  // Not all at once.
  await setTimeout(Math.random() * everyMs)
  while (!counts.isStopped) {
    // Had this process to wait for the machine, a connection may have been closed for its silence: to be read before it is written to.
    await setImmediate()
    try {
      // A connection that was closed in order, before this request was sent, is no failure.
      if (socket === null || socket.destroyed || socket.readableEnded) socket = await open(port)
      const closes = await exchange(socket, request)
      counts.answered++
      if (closes || !keepsAlive) {
        if (keepsAlive) counts.closedByAnswer++
        socket.destroy()
        socket = null
        if (keepsAlive && stopsAtClose) return
      }
    } catch (error) {
      counts.failures.push(`${keepsAlive ? 'keep-alive' : 'new connection'}: ${(error as Error).message}`)
      socket?.destroy()
      socket = null
      if (stopsAtClose) return
    }
    await setTimeout(everyMs)
  }
  socket?.destroy()
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect', { signal: AbortSignal.timeout(ANSWER_MS) })
  // Between two requests nobody else listens; a reset is found out by the next request.
  socket.on('error', () => {})
  socket.resume()
  return socket
}

/** Sends a request and reads its answer. @returns whether the answer closes the connection @throws when it is not the whole of a 200 */
function exchange(socket: Socket, request: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let text = ''
    const timer = globalThis.setTimeout(() => settle(new Error('no answer')), ANSWER_MS)
    const settle = (outcome: Error | boolean): void => {
      clearTimeout(timer)
      socket.off('data', onData).off('error', settle).off('close', onClose)
      if (outcome instanceof Error) reject(outcome)
      else resolve(outcome)
    }
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = text.slice(0, headEnd)
      const bodyBytes = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
      if (text.length < headEnd + 4 + bodyBytes) return
      if (!head.startsWith('HTTP/1.1 200 ')) return settle(new Error(text))
      settle(/\r\nconnection: close/i.test(head))
    }
    const onClose = (): void => settle(new Error(`closed after ${text.length} bytes of the answer`))
    socket.on('data', onData).on('error', settle).on('close', onClose)
    socket.write(request)
  })
}
