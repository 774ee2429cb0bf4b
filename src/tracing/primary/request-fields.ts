import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { RequestStart } from '../../contracts/tracing.ts'
import { queryKeys } from '../encoding/attributes.ts'
import { cut, KIND_OFFSET, SPAN, writeAttributes, writeStatus } from '../encoding/otlp.ts'
import { ProtoWriter } from '../encoding/proto-writer.ts'
import type { SpanPlace } from '../encoding/span-record.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import { clientAttributes, hasFailed, requestSpanName, routeAttributes } from './request-attributes.ts'

/** More than there can be lanes, replaced ones included: a status and a lane make one number with it. */
const LANES_MAX = 1 << 20
/** Remembered entries: so many for routes, and so many for clients. */
const REMEMBERED_MAX = 1000

/** The encoded fields of requests' spans: most of them are the same for each request of a route, or of a client. */
export class RequestFields {
  readonly #routes = new Remembered()
  readonly #clients = new Remembered()

  /** @param status 0: the client disconnected before it was answered */
  write(to: SpanWriter, place: SpanPlace, start: RequestStart, status: number, servedBy: number): void {
    const { method, path, query, host, userAgent, requestId, route } = start
    const outcome = status * LANES_MAX + servedBy
    const ofRoute =
      this.#routes.find(route, method, outcome) ??
      this.#routes.keep(route, method, outcome, (fields) => writeRoute(fields, start, status, servedBy))
    const ofClient =
      this.#clients.find(host, userAgent, 0) ??
      this.#clients.keep(host, userAgent, 0, (fields) =>
        writeAttributes(fields, SPAN.attributes, clientAttributes(start)),
      )
    const keys = query === '' ? '' : cut(queryKeys(query))
    to.writeShort(place, ofRoute, ofClient, { path: cut(path), requestId, query: keys })
  }
}

/** Encoded fields by the two texts and the number that they depend on. */
class Remembered {
  readonly #fields = new Map<string, Map<string, Map<number, Uint8Array>>>()
  readonly #scratch = new ProtoWriter()
  #size = 0
  #last: { first: string; second: string; number: number; fields: Uint8Array | undefined } | undefined

  find(first: string, second: string, number: number): Uint8Array | undefined {
    const last = this.#last
    // Comparing long texts takes a tenth of the time of hashing them, and the same client often comes again.
    if (last?.number === number && last.second === second && last.first === first) return last.fields
    const fields = this.#fields.get(first)?.get(second)?.get(number)
    this.#last = { first, second, number, fields }
    return fields
  }

  keep(first: string, second: string, number: number, write: (to: ProtoWriter) => void): Uint8Array {
    this.#scratch.clear()
    write(this.#scratch)
    const fields = this.#scratch.copy()
    if (this.#size++ === REMEMBERED_MAX) {
      this.#fields.clear()
      this.#size = 1
    }
    const seconds = this.#fields.get(first) ?? new Map<string, Map<number, Uint8Array>>()
    const numbers = seconds.get(second) ?? new Map<number, Uint8Array>()
    this.#fields.set(first, seconds.set(second, numbers.set(number, fields)))
    this.#last = { first, second, number, fields }
    return fields
  }
}

function writeRoute(to: ProtoWriter, start: RequestStart, status: number, servedBy: number): void {
  to.number(SPAN.kind, SpanKind.SERVER + KIND_OFFSET)
  to.text(SPAN.name, requestSpanName(start))
  writeAttributes(to, SPAN.attributes, routeAttributes(start, status, servedBy))
  if (hasFailed(status)) writeStatus(to, SpanStatusCode.ERROR, '')
}
