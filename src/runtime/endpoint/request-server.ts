import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Endpoint, Handler, SseStream, Stream, StreamHandler } from '../../contracts/http.ts'
import type { Hook } from '../../contracts/http-hooks.ts'
import type { Data } from '../../contracts/http-request.ts'
import type { Owner } from '../../contracts/owner.ts'
import type { CodeTracing, OpenSpan } from '../../contracts/tracing.ts'
import type { SocketRoute } from '../../contracts/web-socket.ts'
import { causality } from '../../core/causality/context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { placeOfHook } from './answering.ts'
import type { BodySource } from './body-source.ts'
import { compressed, isCompressible } from './compression.ts'
import { RequestContext } from './context.ts'
import { FileSender, type FileSink } from './file-sender.ts'
import { openGuarded } from './guarded.ts'
import { Hooks } from './hooks.ts'
import { Incoming } from './incoming.ts'
import { readInput } from './input.ts'
import { ReadyReply, type RequestEffects } from './keyed.ts'
import { PathTemplate } from './path-template.ts'
import { errorReply, type Reply, replyOfThrown } from './reply.ts'
import { type FaultLog, openSpan, type Route, readClaims, runRequest } from './run.ts'
import type { NumberedSocketRoute, WebSocketServer } from './web-socket-server.ts'

/** Takes the answers: sends them over the ring in a lane, and straight to the listener in the primary. */
export interface ReplySink extends FileSink {
  openStream(requestId: number, head: string): void
  /** False when there was no room for it. */
  streamData(requestId: number, chunk: string): boolean
  /** The client's address of a request that came without it; empty when it was answered or the client is gone. */
  clientAddress(requestId: number): string
}

interface StreamRoute extends Omit<Route, 'handler'> {
  streamHandler: StreamHandler
}

/** The routes that one thread hosts, and the requests that it handles. */
export class RequestServer {
  readonly sockets: WebSocketServer
  readonly hooks = new Hooks()
  /** Null in a thread without a database. */
  effects: RequestEffects | null = null
  /** HTTP_COMPRESSION. Never in the listener's own thread. */
  isCompressing = false
  #tracing: CodeTracing | null = null
  readonly #sink: ReplySink
  readonly #onFault: FaultLog
  /** Routes by the number that the primary gave them. */
  readonly #routes: (Route | StreamRoute | NumberedSocketRoute | undefined)[] = []
  /** Requests that were not answered at once: only these can be cancelled. */
  readonly #running = new Map<number, RequestContext>()
  readonly #streams = new Map<number, AbortController>()
  /** Spans of the open streams, while they are traced. */
  readonly #streamSpans = new Map<number, OpenSpan>()
  /** Answers that are sent in pieces. */
  readonly #files = new Map<number, { sender: FileSender; context: RequestContext }>()

  constructor(sink: ReplySink, onFault: FaultLog, sockets: WebSocketServer) {
    this.#sink = sink
    this.#onFault = onFault
    this.sockets = sockets
  }

  /** Null while tracing is off. */
  set tracing(tracing: CodeTracing | null) {
    this.#tracing = tracing
    this.sockets.tracing = tracing
  }

  addEndpoint(number: number, endpoint: Endpoint): void {
    const { owner, method, path, handler, options } = endpoint
    const hooks = this.hooks.chainOf(endpoint)
    const origin = { plugin: owner.name, handler: `${method} ${path}` }
    const template = new PathTemplate(path)
    this.#routes[number] = { owner, origin, template, handler, options, hooks, ...spanOf(owner, handler) }
  }

  addStream(number: number, stream: Stream): void {
    const { owner, path, handler, options } = stream
    const hooks = this.hooks.chainOf(stream)
    const origin = { plugin: owner.name, handler: `GET ${path}` }
    const template = new PathTemplate(path)
    const span = spanOf(owner, handler)
    this.#routes[number] = { owner, origin, template, streamHandler: handler, options, hooks, ...span }
  }

  addWebSocket(number: number, route: SocketRoute): void {
    const origin = { plugin: route.owner.name, handler: `GET ${route.path}` }
    const hooks = this.hooks.chainOf(route)
    this.#routes[number] = { ...route, number, origin, hooks, template: new PathTemplate(route.path) }
  }

  /** Gives all routes the hooks that were registered since: those of the primary are added while its plugins boot. */
  settleHooks(): void {
    for (const route of this.#routes) if (route !== undefined) route.hooks = this.hooks.chainOf(route)
  }

  /** Requests and streams that have no answer yet. */
  get inFlight(): number {
    return this.#running.size + this.#streams.size
  }

  handle(requestId: number, frame: RequestFrame): void {
    const route = this.#routes[frame.routeNumber]
    // The plugin is up in another thread and has failed in this one.
    if (route === undefined) return this.#sink.answer(requestId, errorReply('HTTP_INTERNAL'))
    const incoming = new Incoming(frame, this.#sink, requestId)
    const context = new RequestContext(incoming, route.template.text, route.owner.name, this.effects)
    if (!('handler' in route)) {
      if ('handlers' in route) void this.sockets.handshake(requestId, route, incoming, context)
      else void this.#stream(requestId, route, incoming, context)
      return
    }
    const reply = runRequest(route, incoming, context, this.#onFault, this.#tracing)
    const isLater = reply instanceof Promise
    if (!isLater && !(this.isCompressing && isCompressible(reply))) return this.#sink.answer(requestId, reply)
    this.#running.set(requestId, context)
    void this.#answerLater(requestId, isLater ? reply : Promise.resolve(reply), route, context)
  }

  async #answerLater(requestId: number, pending: Promise<Reply>, route: Route, context: RequestContext): Promise<void> {
    let reply = await pending
    if (this.isCompressing && isCompressible(reply)) {
      reply = await compressed(reply, context.headers['accept-encoding'] ?? '')
    }
    if (reply.file === undefined) {
      this.#running.delete(requestId)
      this.#sink.answer(requestId, reply)
    } else await this.#sendFile(requestId, reply, reply.file, route, context)
  }

  async #sendFile(
    requestId: number,
    { status, head }: Reply,
    body: BodySource,
    route: Route,
    context: RequestContext,
  ): Promise<void> {
    // The listener of this thread may still read what came with the request: its answer has to wait.
    await nextTurn()
    this.#running.delete(requestId)
    if (context.isAborted) return body.close()
    const sender = new FileSender(this.#sink, requestId)
    this.#files.set(requestId, { sender, context })
    try {
      await sender.send(status, head, body, context.method === 'HEAD')
    } catch (thrown) {
      this.#onFault(route, context.requestId, thrown, '')
      // Does nothing when the answer has begun: the connection was closed then.
      this.#sink.answer(requestId, errorReply('HTTP_INTERNAL'))
    }
    this.#files.delete(requestId)
  }

  /** Bytes of a file have left for the client. */
  fileFlushed(requestId: number, bytes: number): void {
    this.#files.get(requestId)?.sender.flushed(bytes)
  }

  /** The client is gone or the time is up. */
  cancel(requestId: number): void {
    const context = this.#running.get(requestId)
    if (context !== undefined) {
      if (context.hook) this.#hookCancelled(context, context.hook)
      context.abort()
    }
    this.#streams.get(requestId)?.abort()
    const file = this.#files.get(requestId)
    file?.sender.cancel()
    file?.context.abort()
  }

  #hookCancelled({ route, plugin, requestId, hookDeadlineMs }: RequestContext, hook: Hook): void {
    // The client has left.
    if (performance.now() < (hookDeadlineMs ?? 0)) return
    const late = new HeddleError('HTTP_HANDLER_TIMEOUT', 'It had not ended when the time of the request was up')
    this.#onFault({ template: { text: route }, owner: { name: plugin } }, requestId, late, placeOfHook(hook))
  }

  async #stream(requestId: number, route: StreamRoute, incoming: Incoming, context: RequestContext): Promise<void> {
    const gone = new AbortController()
    this.#streams.set(requestId, gone)
    gone.signal.addEventListener('abort', () => this.#streams.delete(requestId))
    let opened = false
    const span = this.#tracing === null ? null : openSpan(this.#tracing, route as unknown as Route, incoming)
    if (span !== null) this.#streamSpans.set(requestId, span)
    const cause = { eventId: null, requestId: incoming.requestId, trace: span, origin: route.origin }
    try {
      const data = await causality.run(cause, streamInput, route, incoming, context)
      if (data instanceof ReadyReply) {
        for (const { thrown, where } of data.faults)
          this.#onFault(route as unknown as Route, incoming.requestId, thrown, where)
        span?.end()
        this.#streams.delete(requestId)
        return this.#sink.answer(requestId, data.reply)
      }
      this.#sink.openStream(requestId, context.head)
      opened = true
      // A HEAD request, or the client has left meanwhile: the handler would wait for an abort that has already happened.
      if (gone.signal.aborted) return span?.end()
      const stream: SseStream = {
        send: (frame) => {
          if (gone.signal.aborted) return
          // A client sees that a stream ends, but not that frames are missing.
          if (!this.#sink.streamData(requestId, `data: ${JSON.stringify(frame)}\n\n`)) this.#close(requestId)
        },
        close: () => this.#close(requestId),
        signal: gone.signal,
      }
      if (route.options.authValidator !== undefined)
        this.sockets.tokens.hold(data._auth, gone.signal, () => this.#close(requestId))
      if (gone.signal.aborted) return span?.end()
      await causality.run(cause, () => route.streamHandler.call(route.owner.instance, data, stream, context))
      span?.end()
    } catch (thrown) {
      const { reply, isFault } = replyOfThrown(thrown, context)
      if (isFault) span?.fail(thrown)
      else span?.end()
      if (isFault) this.#onFault(route as unknown as Route, incoming.requestId, thrown, '')
      if (opened) return this.#close(requestId)
      this.#streams.delete(requestId)
      this.#sink.answer(requestId, reply)
    } finally {
      this.#streamSpans.delete(requestId)
    }
  }

  #close(requestId: number): void {
    const gone = this.#streams.get(requestId)
    if (gone === undefined) return
    this.#streams.delete(requestId)
    gone.abort()
    this.#sink.endStream(requestId)
  }

  /** Ends all streams: the thread is about to drain. */
  closeStreams(): void {
    for (const requestId of [...this.#streams.keys()]) this.#close(requestId)
    // Nothing waits for their handlers.
    for (const span of this.#streamSpans.values()) span.end()
  }
}

async function streamInput(
  route: StreamRoute,
  incoming: Incoming,
  context: RequestContext,
): Promise<Data | ReadyReply> {
  const { hooks } = route
  if (hooks !== null) return openGuarded(route, hooks, incoming, context, () => readClaims(route, incoming))
  const claims = await readClaims(route, incoming)
  const data = await readInput(incoming, route.template, route.options, context)
  if (claims !== undefined) data._auth = claims
  return data
}

/** Name and attributes of all spans of a handler. */
function spanOf(owner: Owner, handler: Handler | StreamHandler): Pick<Route, 'name' | 'spanAttributes'> {
  const name = `${owner.name}.${handler.name.replace(/^bound /, '') || 'anonymous'}`
  return { name, spanAttributes: { 'code.function.name': name, 'heddle.plugin': owner.name } }
}
