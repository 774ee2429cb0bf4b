// The routes of one thread: a frame becomes an answer.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Hook, Route } from '../../contracts/http.ts'
import type { BodyKind } from '../../contracts/http-request.ts'
import type { CodeTracing, Origin } from '../../contracts/tracing.ts'
import { type ErrorCode, HeddleError } from '../../core/errors/catalogue.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { FaultLog } from './answering.ts'
import { RequestContext } from './context.ts'
import { compressed, isCompressible } from './encodings.ts'
import type { RequestEffects } from './idempotency.ts'
import { IncomingBody } from './input/body.ts'
import { KeyScanner } from './input/key-scanner.ts'
import { incomingParts } from './input/multipart.ts'
import { errorReply, type Reply } from './reply.ts'
import { type AnswerSink, HeldTokens, type RequestSteps, type RequestThread } from './request-thread.ts'
import { Hooks, PathTemplate, placeOfHook, type ServedEndpoint, type ServedRoute } from './route.ts'
import { runRequest } from './run.ts'
import { WebSocketServer } from './sockets.ts'
import type { BodySource } from './stream/body-source.ts'
import { FileSender } from './stream/sender.ts'
import { SseServer } from './stream/sse.ts'

/** The routes that one thread hosts, and the requests that it handles. */
export class RequestServer implements RequestThread {
  readonly sink: AnswerSink
  readonly onFault: FaultLog
  readonly steps: RequestSteps | null
  readonly tokens = new HeldTokens()
  /** Set before the first request. */
  effects!: RequestEffects
  tracing: CodeTracing | null = null
  /** HTTP_COMPRESSION. Never in the listener's own thread. */
  isCompressing = false
  isSound: (origin?: Origin) => boolean = () => true
  /** HTTP_MAX_KEYS. */
  maxKeys = Number.POSITIVE_INFINITY
  readonly hooks = new Hooks()
  readonly sockets = new WebSocketServer(this)
  readonly #streams = new SseServer(this)
  /** Routes by the number that the primary gave them. */
  readonly #routes: (ServedRoute | undefined)[] = []
  /** Requests that were not answered at once: only these can be cancelled. */
  readonly #running = new Map<number, RequestContext>()
  /** Bodies that handlers read while they come. */
  readonly #bodies = new Map<number, IncomingBody>()
  /** Answers that are sent in pieces. */
  readonly #files = new Map<number, { sender: FileSender; context: RequestContext }>()

  constructor(sink: AnswerSink, onFault: FaultLog, steps: RequestSteps | null) {
    this.sink = sink
    this.onFault = onFault
    this.steps = steps
  }

  /** Serves a route under the number that the primary has given it. */
  add(number: number, route: Route): void {
    const { owner, method, path } = route
    const { body, ...rest } = route.options
    const bodyKind = typeof body === 'string' ? body : null
    const options = typeof body === 'string' || body === undefined ? rest : { ...rest, body }
    const name = `${owner.name}.${handlerName(route)}`
    this.#routes[number] = {
      ...route,
      number,
      origin: { plugin: owner.name, handler: `${method} ${path}` },
      template: new PathTemplate(path),
      options,
      bodyKind,
      hooks: this.hooks.chainOf(route),
      name,
      spanAttributes: { 'code.function.name': name, 'heddle.plugin': owner.name },
    }
  }

  /** Gives all routes the hooks that were registered since: those of the primary are added while its plugins boot. */
  settleHooks(): void {
    for (const route of this.#routes) if (route !== undefined) route.hooks = this.hooks.chainOf(route)
  }

  /**
   * Where no further request comes: @returns tells whether there is a handler that has not settled, though its client may be gone, and that is
   * not longer about it from now on than its route allows, or a file on its way.
   */
  settling(): () => boolean {
    const beganMs = performance.now()
    const limitsMs = [...this.#running].map(([requestId, { limitMs }]) => [requestId, limitMs] as const)
    return () => {
      const tookMs = performance.now() - beganMs
      return this.#files.size > 0 || limitsMs.some(([id, limitMs]) => tookMs < limitMs && this.#running.has(id))
    }
  }

  /** Requests without a whole answer whose clients wait. */
  get awaited(): number {
    let awaited = 0
    for (const context of this.#running.values()) if (!context.isAborted) awaited++
    for (const { context } of this.#files.values()) if (!context.isAborted) awaited++
    return awaited
  }

  handle(requestId: number, frame: RequestFrame): void {
    this.steps?.begin(requestId, frame)
    const route = this.#routes[frame.routeNumber]
    // The plugin is up in another thread and has failed in this one.
    if (route === undefined) return this.sink.answer(requestId, errorReply('HTTP_INTERNAL'))
    const context = new RequestContext(this, frame, route)
    if (route.kind === 'socket') return void this.sockets.handshake(requestId, route, frame, context)
    if (route.kind === 'stream') {
      // Until its guards have settled.
      this.#running.set(requestId, context)
      return void this.#streams.serve(requestId, route, frame, context, () => this.#running.delete(requestId))
    }
    if (route.bodyKind !== null && !isWhole(route, frame)) this.#openBody(requestId, route.bodyKind, context)
    const reply = runRequest(this, route, frame, context)
    const isLater = reply instanceof Promise
    if (!isLater && !(this.isCompressing && isCompressible(reply))) {
      if (route.bodyKind !== null) this.#closeBody(requestId)
      return this.sink.answer(requestId, reply)
    }
    this.#running.set(requestId, context)
    void this.#answerLater(requestId, isLater ? reply : Promise.resolve(reply), route, context)
  }

  async #answerLater(
    requestId: number,
    pending: Promise<Reply>,
    route: ServedEndpoint,
    context: RequestContext,
  ): Promise<void> {
    let reply = await pending
    if (this.isCompressing && isCompressible(reply)) {
      reply = await compressed(reply, context.headers['accept-encoding'] ?? '')
    }
    if (reply.file === undefined) {
      this.#running.delete(requestId)
      if (route.bodyKind !== null) this.#closeBody(requestId)
      this.sink.answer(requestId, reply)
    } else await this.#sendFile(requestId, reply, reply.file, route, context)
  }

  async #sendFile(
    requestId: number,
    { status, head }: Reply,
    body: BodySource,
    route: ServedEndpoint,
    context: RequestContext,
  ): Promise<void> {
    // The listener of this thread may still read what came with the request: its answer has to wait.
    await nextTurn()
    this.#running.delete(requestId)
    if (context.isAborted) {
      body.close()
      return this.sink.settled(requestId)
    }
    // A stream may be made of what comes; the handler of any other body has ended.
    if (route.bodyKind !== null && body.lengthBytes >= 0) this.#closeBody(requestId)
    const sender = new FileSender(this.sink, requestId)
    this.#files.set(requestId, { sender, context })
    try {
      await sender.send(status, head, body, context.method === 'HEAD')
    } catch (thrown) {
      this.onFault(context.route, context.plugin, context.requestId, thrown)
      // Does nothing when the answer has begun: the connection was closed then.
      this.sink.answer(requestId, errorReply('HTTP_INTERNAL'))
    }
    this.#files.delete(requestId)
    if (route.bodyKind !== null) this.#closeBody(requestId)
  }

  /** Bytes of a file have left for the client. */
  fileFlushed(requestId: number, bytes: number): void {
    this.#files.get(requestId)?.sender.flushed(bytes)
  }

  #openBody(requestId: number, kind: BodyKind, context: RequestContext): void {
    const type = context.headers['content-type'] ?? ''
    const scanner = kind === 'stream' ? new KeyScanner() : null
    const body = new IncomingBody(
      (bytes) => this.sink.wantBody(requestId, bytes),
      scanner && ((piece) => scanner.push(piece)),
    )
    this.#bodies.set(requestId, body)
    context.body = kind === 'stream' ? body : incomingParts(body, type)
  }

  bodyPiece(requestId: number, piece: Buffer): void {
    this.#bodies.get(requestId)?.add(piece)
  }

  /** @param fault why it is not complete; empty when it is */
  bodyEnded(requestId: number, fault: ErrorCode | ''): void {
    const body = this.#bodies.get(requestId)
    if (fault === '') body?.complete()
    else body?.fail(fault)
  }

  /** The request is answered, or nobody waits for its answer: whatever reads the rest learns that it does not come. */
  #closeBody(requestId: number): void {
    this.#bodies.get(requestId)?.fail('HTTP_BODY_BROKEN')
    this.#bodies.delete(requestId)
  }

  /** The client is gone or the time is up. */
  cancel(requestId: number): void {
    this.#closeBody(requestId)
    const context = this.#running.get(requestId)
    // Else it is answered, or its handler is one that no answer follows.
    if (context === undefined) this.sink.settled(requestId)
    else {
      if (context.hook) this.#hookCancelled(context, context.hook)
      context.abort()
    }
    this.#streams.cancel(requestId)
    const file = this.#files.get(requestId)
    file?.sender.cancel()
    file?.context.abort()
  }

  #hookCancelled({ route, plugin, requestId, hookDeadlineMs }: RequestContext, hook: Hook): void {
    // The client has left.
    if (performance.now() < (hookDeadlineMs ?? 0)) return
    const late = new HeddleError('HTTP_HANDLER_TIMEOUT', 'It had not ended when the time of the request was up')
    this.onFault(route + placeOfHook(hook), plugin, requestId, late)
  }

  /** Stops all files on their way, whose time is up: their clients see that when the thread is gone. */
  stopFiles(): void {
    for (const { sender, context } of this.#files.values()) {
      sender.cancel()
      context.abort()
    }
  }

  /** Ends all streams: the thread is about to drain. */
  closeStreams(): void {
    this.#streams.close()
  }
}

/** True where nothing more of the body comes: of a short one that a fetch handler reads, and of none. */
function isWhole({ method }: ServedRoute, frame: RequestFrame): boolean {
  if (method !== 'ALL') return false
  return (
    frame.body !== null ||
    (frame.header('transfer-encoding') === undefined && (frame.header('content-length') ?? '0') === '0')
  )
}

/** What the code of a route is called. */
function handlerName(route: Route): string {
  if (route.kind === 'socket') return 'socket'
  const unnamed = route.kind === 'stream' ? 'stream' : route.method.toLowerCase()
  return route.handler.name.replace(/^bound /, '') || unnamed
}
