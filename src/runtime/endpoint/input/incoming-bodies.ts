// The bodies that the handlers of one thread read while they come.
import type { BodyKind } from '../../../contracts/http-request.ts'
import type { ErrorCode } from '../../../core/errors/catalogue.ts'
import type { RequestContext } from '../context.ts'
import { IncomingBody } from './body.ts'
import { IncomingParts } from './multipart.ts'

/** Asks for the bytes of bodies. */
interface BodyRequester {
  wantBody(requestId: number, bytes: number): void
}

/** The bodies that the handlers of one thread read while they come. */
export class IncomingBodies {
  readonly #requester: BodyRequester
  readonly #open = new Map<number, IncomingBody>()

  constructor(requester: BodyRequester) {
    this.#requester = requester
  }

  open(requestId: number, kind: BodyKind, context: RequestContext): void {
    const body = new IncomingBody((bytes) => this.#requester.wantBody(requestId, bytes))
    this.#open.set(requestId, body)
    context.body = kind === 'stream' ? body : new IncomingParts(body, context.headers['content-type'] ?? '')
  }

  add(requestId: number, piece: Buffer): void {
    this.#open.get(requestId)?.add(piece)
  }

  ended(requestId: number, fault: ErrorCode | ''): void {
    const body = this.#open.get(requestId)
    if (fault === '') body?.complete()
    else body?.fail(fault)
  }

  /** The request is answered, or nobody waits for its answer: whatever reads the rest learns that it does not come. */
  close(requestId: number): void {
    const body = this.#open.get(requestId)
    if (body === undefined) return
    this.#open.delete(requestId)
    body.fail('HTTP_BODY_BROKEN')
  }
}
