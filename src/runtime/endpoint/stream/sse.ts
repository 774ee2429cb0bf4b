// Server-sent events of one thread.
import type { SseStream } from '../../../contracts/http.ts'
import type { OpenSpan } from '../../../contracts/tracing.ts'
import { causality } from '../../../core/causality/context.ts'
import type { RequestFrame } from '../../../transport/frames/request-frame.ts'
import { Answering } from '../answering.ts'
import type { RequestContext } from '../context.ts'
import { errorReply, replyOfThrown } from '../reply.ts'
import type { AnswerSink, RequestThread } from '../request-thread.ts'
import type { ServedStream } from '../route.ts'
import { openSpan } from '../run.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** A handler that has sent nothing may refuse its client for this long, milliseconds. Then the client is told that it is connected. */
const SSE_HEAD_MAX_WAIT_MS = 1_000

/** One client of a stream. Its head leaves with the first frame, when its handler has settled, or after a while. */
class SseResponse implements SseStream {
  readonly #sink: AnswerSink
  readonly #requestId: number
  readonly #context: RequestContext
  readonly #gone = new AbortController()
  #isOpen = false
  #timer: NodeJS.Timeout | undefined

  constructor(sink: AnswerSink, requestId: number, context: RequestContext, onGone: () => void) {
    this.#sink = sink
    this.#requestId = requestId
    this.#context = context
    this.#gone.signal.addEventListener('abort', onGone)
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  /** Its handler runs, or has run. */
  get hasBegun(): boolean {
    return this.#timer !== undefined
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  openSoon(): void {
    this.#timer = setTimeout(() => this.open(), SSE_HEAD_MAX_WAIT_MS)
  }

  open(): void {
    if (this.#isOpen || this.signal.aborted) return
    this.#isOpen = true
    clearTimeout(this.#timer)
    this.#sink.openStream(this.#requestId, this.#context.head)
  }

  send(frame: unknown): void {
    if (this.signal.aborted) return
    const chunk = `data: ${toJson(frame)}\n\n`
    this.open()
    // A client sees that a stream ends, but not that frames are missing.
    if (!this.#sink.streamData(this.#requestId, chunk)) this.close()
  }

  /** @param isBroken it is not whole, and its client sees that */
  close(isBroken = false): void {
    if (this.signal.aborted) return
    this.open()
    this.leave()
    this.#sink.endStream(this.#requestId, isBroken)
  }

  /** The client is gone, or gets another answer. */
  leave(): void {
    clearTimeout(this.#timer)
    this.#gone.abort()
  }
}

/** The streams of server-sent events of one thread. */
export class SseServer {
  readonly #thread: RequestThread
  readonly #open = new Map<number, SseResponse>()
  /** Spans of the open streams, while they are traced. */
  readonly #spans = new Map<number, OpenSpan>()

  constructor(thread: RequestThread) {
    this.#thread = thread
  }

  /** @param entered told when the guards have settled: then it begins, or is refused */
  async serve(
    requestId: number,
    route: ServedStream,
    frame: RequestFrame,
    context: RequestContext,
    entered: () => void,
  ): Promise<void> {
    const { sink, tracing, onFault, tokens } = this.#thread
    const stream = new SseResponse(sink, requestId, context, () => this.#open.delete(requestId))
    this.#open.set(requestId, stream)
    const span = tracing === null ? null : openSpan(tracing, route, frame)
    if (span !== null) this.#spans.set(requestId, span)
    const cause = { eventId: null, requestId: frame.requestId, trace: span, origin: route.origin }
    try {
      const answering = new Answering(route, frame, context)
      const data = await causality.run(cause, () => answering.enter())
      entered()
      if (data === null) {
        const { faults } = answering
        answering.tellFaults(onFault)
        if (faults.length > 0) span?.fail(faults[0]!.thrown)
        else span?.end()
        stream.leave()
        return sink.answer(requestId, answering.refusal!)
      }
      if (context.isAborted) {
        span?.end()
        return sink.answer(requestId, errorReply('HTTP_HANDLER_TIMEOUT'))
      }
      // Its handler would wait for an abort that has already happened.
      if (context.method === 'HEAD') stream.open()
      if (context.method === 'HEAD' || stream.signal.aborted) return span?.end()
      tokens.hold(context.tokenHeld, stream.signal, () => stream.close())
      if (stream.signal.aborted) return span?.end()
      stream.openSoon()
      await causality.run(cause, () => route.handler.call(route.owner.instance, data, stream, context))
      stream.open()
      span?.end()
    } catch (thrown) {
      const { reply, isFault } = replyOfThrown(thrown, context)
      if (isFault) span?.fail(thrown)
      else span?.end()
      if (isFault) onFault(context.route, context.plugin, context.requestId, thrown)
      if (stream.isOpen) return stream.close()
      stream.leave()
      sink.answer(requestId, reply)
    } finally {
      this.#spans.delete(requestId)
    }
  }

  /** The client is gone. */
  cancel(requestId: number): void {
    this.#open.get(requestId)?.leave()
  }

  /** Breaks all streams off: the thread is about to drain. One that ended in order would look like a whole one. */
  close(): void {
    for (const [requestId, stream] of [...this.#open]) {
      if (stream.hasBegun || stream.isOpen) stream.close(true)
      else {
        stream.leave()
        this.#thread.sink.answer(requestId, errorReply('HTTP_DRAINING'))
      }
    }
    // Nothing waits for their handlers.
    for (const span of this.#spans.values()) span.end()
  }
}
