import { errorReply, JSON_TYPE } from '../../runtime/endpoint/reply.ts'
import type { ClientResponse, HttpLibrary } from './library.ts'

/**
 * Answers 400 to a request whose end is not certain, and closes its connection: nothing that came behind the request is read. A HEAD
 * request gets no answer, because a body must not stand behind it.
 */
export function refuseFraming(
  library: HttpLibrary,
  res: ClientResponse,
  method: string,
  requestId: string,
  fault: string,
): void {
  const { status, body } = errorReply('HTTP_BAD_REQUEST', `The request is ambiguous: ${fault}`)
  const head = `x-request-id: ${requestId}\r\ncontent-type: ${JSON_TYPE}\r\n`
  library.refuse(res, status, head, method === 'HEAD' ? null : (body as string))
}
