// What is refused: a request whose end is not certain, and one that comes too early. And how often that is said.
import { atTurnEnd } from '../../core/schedule/waiting.ts'
import { errorReply, JSON_TYPE } from '../../runtime/endpoint/reply.ts'
import type { Log } from '../logging/process-log.ts'
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

/** One line of a kind in this time, milliseconds, with how many there were. */
const TOLD_EVERY_MS = 60_000

/** What the line says of the last one. */
type RefusalFields = Readonly<Record<string, string>>

interface Kind {
  total: number
  /** Since the last line. */
  count: number
  fields: RefusalFields
  timer: NodeJS.Timeout | null
}

/** Tells of what strangers can cause as often as they like: the first at once, and then one line a minute. */
export class Refusals {
  readonly #log: Log
  readonly #before: string
  readonly #kinds = new Map<string, Kind>()

  /** @param before stands before each reason in the log */
  constructor(log: Log, before = '') {
    this.#log = log
    this.#before = before
  }

  /** @param what one of a few sentences */
  note(what: string, fields: RefusalFields): void {
    const kind = this.#kinds.get(what) ?? { total: 0, count: 0, fields, timer: null }
    this.#kinds.set(what, kind)
    kind.total++
    kind.count++
    kind.fields = fields
    if (kind.timer === null) this.#tell(what, kind)
  }

  #tell(what: string, kind: Kind): void {
    if (kind.count === 0) {
      kind.timer = null
      return
    }
    this.#log('WARNING', this.#before + what, 'http', { ...kind.fields, count: kind.count })
    kind.count = 0
    kind.timer = setTimeout(() => this.#tell(what, kind), TOLD_EVERY_MS).unref()
  }

  /** Since the start, by reason. */
  totals(): [reason: string, count: number][] {
    return [...this.#kinds].map(([reason, { total }]) => [reason, total])
  }
}

/** A request, as it is told of. */
interface Pipelined {
  readonly requestId: string
  readonly label: string
}

/**
 * Notices a client that sends a request together with the one before it: the library closes its connection, because requests of one
 * connection are served one after another. To us it looks like a client that has gone, except that no turn of the event loop lies between
 * the request and its end. A second request that comes in a later turn cannot be told from a client that has gone.
 */
class Pipelining {
  #newest: Pipelined | null = null
  #isTurnNoted = false
  /** Told of each request that was ended so. */
  onFound: (request: Pipelined) => void = () => {}

  begun(request: Pipelined): void {
    this.#newest = request
    if (this.#isTurnNoted) return
    this.#isTurnNoted = true
    atTurnEnd(this.#endTurn)
  }

  aborted(request: Pipelined): void {
    if (this.#newest === request) this.onFound(request)
  }

  readonly #endTurn = (): void => {
    this.#isTurnNoted = false
    this.#newest = null
  }
}

/** Of the one listener that a process has. */
export const pipelining = new Pipelining()

/** A body of a known length that is not longer leaves for the kernel at once, whoever reads it. */
export const LASTING_MIN_BYTES = 65_536
