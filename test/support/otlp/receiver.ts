import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server as ListeningServer, type Socket } from 'node:net'
import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import { authority } from '../certificates.ts'
import { temporaryFolder } from '../folder.ts'
import type { Owner } from '../heddle.ts'
import { EXPORT, type RawRequest, type RawResponse } from './definitions.ts'
import { decodeRequest, type ReceivedSpan } from './span.ts'
import { formatTraces, formatTree } from './tree.ts'

const HOST = '127.0.0.1'
const WAIT_MS = 20_000

/**
 * What it does with an export. `refuse`: UNAVAILABLE, which a client may try again; `deny`: PERMISSION_DENIED, which it may not;
 * `hang`: never answers; `delayMs`: takes the spans and says so that much later; `partial`: takes all but the last span of each.
 */
export type Behaviour = 'accept' | 'refuse' | 'deny' | 'hang' | 'partial' | { delayMs: number }

/** One call of Export, whatever became of it. */
export interface ExportCall {
  /** Its gRPC metadata; keys are lower-case, several values of one key joined by a comma. */
  metadata: Record<string, string>
  spans: number
}

interface Certificate {
  key: Buffer
  chain: Buffer
  /** The file of whom a client has to trust. */
  trustedPath: string
}

export interface OtlpReceiver {
  /** `http://127.0.0.1:<port>`, `https://localhost:<port>` with TLS. Stays the same over `stop` and `start`. */
  readonly endpoint: string
  /** What a client must trust to speak TLS to it: path of a PEM file; undefined without TLS. */
  readonly certificatePath: string | undefined
  /** Taken so far, in order of arrival. */
  readonly spans: ReceivedSpan[]
  readonly requests: ExportCall[]
  /** What broke a rule of the protocol in any call, each said once. */
  readonly faults: string[]
  /** Resolves with what the predicate returns once that is truthy; looked at after every call. @throws with all traces after 20 s */
  until<T>(predicate: (spans: ReceivedSpan[]) => T, what: string): Promise<NonNullable<T>>
  /** From the next call on. At first it accepts. */
  behave(behaviour: Behaviour): void
  /** One trace as text: `KIND name` a line, children below their parent, two blanks further in, in order of their start. */
  tree(traceId: string): string
  /** Listens again after `stop`, on the same port. */
  start(): Promise<void>
  /** As the loss of its process: connections break, the port is closed. May be called twice. */
  stop(): Promise<void>
}

export interface ReceiverOptions {
  /** Speaks TLS with a certificate of its own. */
  tls?: boolean
}

/** An OTLP/gRPC receiver of traces on a free port of loopback; ends with the test. */
export async function otlpReceiver(t: Owner, options: ReceiverOptions = {}): Promise<OtlpReceiver> {
  const receiver = new Receiver(options.tls === true ? await certificateIn(temporaryFolder(t)) : undefined)
  t.after(() => receiver.end())
  await receiver.start()
  return receiver
}

async function certificateIn(folder: string): Promise<Certificate> {
  const { caFile, issue } = await authority(folder, 'receiver')
  const { keyFile, certificateFile } = await issue('server', 'IP:127.0.0.1,DNS:localhost')
  return { key: await readFile(keyFile), chain: await readFile(certificateFile), trustedPath: caFile }
}

class Receiver implements OtlpReceiver {
  readonly certificatePath: string | undefined
  readonly spans: ReceivedSpan[] = []
  readonly requests: ExportCall[] = []
  readonly #server = new Server()
  readonly #injector: ConnectionInjector
  readonly #sockets = new Set<Socket>()
  readonly #origin: string
  readonly #faults = new Set<string>()
  readonly #looks = new Set<() => void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #behaviour: Behaviour = 'accept'
  #listener: ListeningServer | undefined
  #port = 0

  constructor(certificate: Certificate | undefined) {
    this.certificatePath = certificate?.trustedPath
    // TLS knows names only: an address draws a warning from Node.
    this.#origin = certificate === undefined ? `http://${HOST}` : 'https://localhost'
    const access =
      certificate === undefined
        ? ServerCredentials.createInsecure()
        : ServerCredentials.createSsl(null, [{ private_key: certificate.key, cert_chain: certificate.chain }])
    this.#server.addService({ Export: EXPORT }, { Export: this.#export })
    // A listener of its own: gRPC's says goodbye to every call before it goes, which no process does that dies.
    this.#injector = this.#server.createConnectionInjector(access)
  }

  get endpoint(): string {
    return `${this.#origin}:${this.#port}`
  }

  get faults(): string[] {
    return [...this.#faults]
  }

  behave(behaviour: Behaviour): void {
    this.#behaviour = behaviour
  }

  tree(traceId: string): string {
    return formatTree(this.spans.filter((span) => span.traceId === traceId))
  }

  async start(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer((socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      this.#injector.injectConnection(socket)
    })
    this.#listener = listener
    listener.listen(this.#port, HOST)
    await once(listener, 'listening')
    this.#port = (listener.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    if (listener === undefined) return
    const closed = once(listener, 'close')
    listener.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** For good. */
  async end(): Promise<void> {
    await this.stop()
    this.#server.forceShutdown()
  }

  until<T>(predicate: (spans: ReceivedSpan[]) => T, what: string): Promise<NonNullable<T>> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#looks.delete(look)
      }
      const look = (): void => {
        try {
          const value = predicate(this.spans)
          if (!value) return
          done()
          resolve(value)
        } catch (error) {
          done()
          reject(error)
        }
      }
      const timer = setTimeout(() => {
        done()
        reject(new Error(`Not within ${WAIT_MS} ms: ${what}\n${this.#describe()}`))
      }, WAIT_MS)
      this.#looks.add(look)
      look()
    })
  }

  readonly #export = (call: ServerUnaryCall<RawRequest, RawResponse>, answer: sendUnaryData<RawResponse>): void => {
    const { spans, faults } = decodeRequest(call.request)
    const metadata = Object.fromEntries(
      Object.keys(call.metadata.getMap()).map((key) => [key, call.metadata.get(key).join(', ')]),
    )
    this.requests.push({ metadata, spans: spans.length })
    for (const fault of faults) this.#faults.add(fault)
    this.#answer(spans, answer)
    for (const look of this.#looks) look()
  }

  #answer(spans: ReceivedSpan[], answer: sendUnaryData<RawResponse>): void {
    const behaviour = this.#behaviour
    switch (behaviour) {
      case 'accept':
        this.spans.push(...spans)
        return answer(null, {})
      case 'refuse':
        return answer({ code: status.UNAVAILABLE, details: 'the receiver refuses' })
      case 'deny':
        return answer({ code: status.PERMISSION_DENIED, details: 'the receiver denies' })
      case 'hang':
        return
      case 'partial':
        this.spans.push(...spans.slice(0, -1))
        return answer(null, { partialSuccess: { rejectedSpans: 1, errorMessage: 'the last span is refused' } })
      default: {
        this.spans.push(...spans)
        const timer = setTimeout(() => {
          this.#timers.delete(timer)
          answer(null, {})
        }, behaviour.delayMs)
        this.#timers.add(timer)
      }
    }
  }

  #describe(): string {
    const calls = this.requests.length
    const count = this.requests.reduce((sum, { spans }) => sum + spans, 0)
    const traces = formatTraces(this.spans)
    return `${calls} exports with ${count} spans, ${this.spans.length} taken\n${traces}\n${this.faults.join('\n')}`
  }
}
