import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Reply } from '../../../runtime/endpoint/reply.ts'
import { pageOf } from './client-fault.ts'
import { NodeResponse, type ResponseOwner } from './response.ts'

/** A client has this long to read why its connection is closed, milliseconds. */
const LINGER_MS = 1_000

/**
 * One connection. As with uWebSockets.js its requests are served one at a time: with a request that comes before the answer to the one
 * before it, that answer is the last.
 */
export class ClientConnection implements ResponseOwner {
  readonly #socket: Socket
  #current: NodeResponse | null = null
  #isOver = false
  isUpgraded = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** No further request is served. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Nothing is being answered, or the answer is written and the client does not read it. */
  get isStuck(): boolean {
    return this.#current === null || this.#current.isStuck
  }

  /** Begins an answer; null when the request is not served. */
  open(req: IncomingMessage, res: ServerResponse): NodeResponse | null {
    if (this.#current !== null) this.#isOver = true
    if (this.#current?.isUnderWay) this.#current.close()
    if (this.#isOver) return null
    this.#current = new NodeResponse(req, res, this)
    return this.#current
  }

  isLast(): void {
    this.#isOver = true
  }

  responseDone(response: NodeResponse): void {
    if (this.#current !== response) return
    this.#current = null
    if (this.#isOver) this.#socket.destroySoon()
  }

  /** What came cannot be read. Behind a request that is being answered it gets no answer: that one is the last. */
  fail(reply: Reply): void {
    if (this.#isOver) return
    this.#isOver = true
    const current = this.#current
    if (current === null) return this.#end(reply)
    if (current.isRequestComplete) return
    // It is the body of this request.
    if (current.hasBegun) return this.#socket.destroySoon()
    current.abandon()
    this.#end(reply)
  }

  #end(reply: Reply): void {
    this.#socket.end(pageOf(reply))
    // Closed at once, it would be reset where the client still sends, and the answer be lost.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}
