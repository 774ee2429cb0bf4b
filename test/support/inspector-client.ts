import { type EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'

/** As a client; the runtime declares what it uses as a server. */
interface Socket extends EventEmitter {
  send(text: string): void
  close(): void
  terminate(): void
}
const Client = WebSocket as unknown as new (url: string) => Socket

// biome-ignore lint/suspicious/noExplicitAny: messages of the inspector's protocol
type Message = any

/** A place in a source, as an editor has it: an absolute path, and a line that counts from 1. */
export interface Place {
  file: string
  line: number
}

/** Where a thread stands. */
export interface Pause {
  thread: Thread
  place: Place
  functionName: string
}

/**
 * A debugger as editors are: over the inspector's own protocol, with breakpoints by file and line that it sets in every thread that loads the
 * file, before that thread runs.
 */
export class InspectorClient {
  readonly pauses: Pause[] = []
  readonly threads = new Map<string, Thread>()
  breakpoints: Place[] = []
  /** Breakpoints that threads have taken, all in all. */
  bound = 0
  readonly #socket: Socket
  #sent = 0
  readonly #waiting = new Map<number, (message: Message) => void>()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (text) => this.#onMessage(JSON.parse(String(text))))
  }

  /** @param url as the process has printed it: `ws://127.0.0.1:…` */
  static async connect(url: string, breakpoints: Place[]): Promise<InspectorClient> {
    const socket = new Client(url)
    await once(socket, 'open')
    const client = new InspectorClient(socket)
    client.breakpoints = breakpoints
    await client.send('NodeWorker.enable', { waitForDebuggerOnStart: true })
    return client
  }

  send(method: string, params: object = {}): Promise<Message> {
    const id = ++this.#sent
    this.#socket.send(JSON.stringify({ id, method, params }))
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  close(): void {
    this.#socket.close()
  }

  /** As the process of a debugger that is killed. */
  die(): void {
    this.#socket.terminate()
  }

  #onMessage({ id, method, params, result }: Message): void {
    if (id !== undefined) return this.#waiting.get(id)?.(result)
    if (method === 'NodeWorker.attachedToWorker') {
      this.threads.set(params.sessionId, new Thread(this, params.sessionId))
    } else if (method === 'NodeWorker.detachedFromWorker') this.threads.delete(params.sessionId)
    else if (method === 'NodeWorker.receivedMessageFromWorker') {
      this.threads.get(params.sessionId)?.onMessage(JSON.parse(params.message))
    }
  }
}

/** One thread that the debugger is attached to. */
export class Thread {
  readonly #client: InspectorClient
  readonly #sessionId: string
  #sent = 0
  readonly #waiting = new Map<number, (message: Message) => void>()
  readonly #scripts = new Map<string, { url: string; map: SourceMap | null }>()

  constructor(client: InspectorClient, sessionId: string) {
    this.#client = client
    this.#sessionId = sessionId
    void this.send('Debugger.enable')
    void this.send('Runtime.runIfWaitingForDebugger')
  }

  resume(): Promise<void> {
    return this.send('Debugger.resume')
  }

  send(method: string, params: object = {}): Promise<Message> {
    const id = ++this.#sent
    const message = JSON.stringify({ id, method, params })
    void this.#client.send('NodeWorker.sendMessageToWorker', { sessionId: this.#sessionId, message })
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  onMessage({ id, method, params, result }: Message): void {
    if (id !== undefined) return this.#waiting.get(id)?.(result)
    if (method === 'Debugger.scriptParsed') void this.#onScript(params)
    if (method !== 'Debugger.paused') return
    const [{ location, functionName }] = params.callFrames
    const { url, map } = this.#scripts.get(location.scriptId)!
    this.#client.pauses.push({ thread: this, functionName, place: placeOf(url, map, location) })
  }

  /** Sets the breakpoints of a file that the thread has loaded: at the first place of their line where it can stop. */
  async #onScript({ scriptId, url, sourceMapURL, endLine }: Message): Promise<void> {
    const map = mapOf(sourceMapURL)
    this.#scripts.set(scriptId, { url, map })
    for (const { file, line } of this.#client.breakpoints) {
      if (placeOf(url, map, { lineNumber: 0, columnNumber: 0 }).file !== file) continue
      const { locations } = await this.send('Debugger.getPossibleBreakpoints', {
        start: { scriptId, lineNumber: 0, columnNumber: 0 },
        end: { scriptId, lineNumber: endLine + 1, columnNumber: 0 },
      })
      const location = locations.find((each: Message) => placeOf(url, map, each).line === line)
      if (location === undefined) continue
      await this.send('Debugger.setBreakpoint', { location })
      this.#client.bound++
    }
  }
}

/** Of a text that names its map, or has it in itself. */
function mapOf(url = ''): SourceMap | null {
  if (url.startsWith('file:')) return new SourceMap(JSON.parse(readFileSync(fileURLToPath(url), 'utf8')))
  const [, body] = /^data:application\/json[^,]*?;base64,(.*)$/s.exec(url) ?? []
  return body === undefined ? null : new SourceMap(JSON.parse(Buffer.from(body, 'base64').toString()))
}

function placeOf(url: string, map: SourceMap | null, { lineNumber, columnNumber }: Message): Place {
  const path = url.startsWith('file:') ? fileURLToPath(url.replace(/\?.*/, '')) : url
  if (map === null) return { file: path, line: lineNumber + 1 }
  const origin = map.findEntry(lineNumber, columnNumber)
  // What the loader has put in is in no source.
  if (!('originalLine' in origin)) return { file: path, line: 0 }
  const { originalSource, originalLine } = origin
  const file = originalSource.startsWith('file:') ? fileURLToPath(originalSource) : originalSource
  return { file: isAbsolute(file) ? file : path, line: originalLine + 1 }
}
