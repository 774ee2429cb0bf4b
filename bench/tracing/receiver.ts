// A receiver of traces that stores nothing: it accepts every export over OTLP/gRPC, counts its spans and drops it.
import { promisify } from 'node:util'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'

export interface DiscardCounts {
  exports: number
  spans: number
  bytes: number
  /** CPU time of this process, which receiving takes from the machine. */
  cpuMs: number
}

export interface DiscardReceiver {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string
  /** Ends it. May be called twice. @returns what it has received */
  stop(): DiscardCounts
}

const NOTHING = Buffer.alloc(0)
const EXPORT = {
  path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  requestStream: false,
  responseStream: false,
  requestSerialize: (message: Buffer) => message,
  requestDeserialize: (message: Buffer) => message,
  // An empty message means that all spans were accepted.
  responseSerialize: () => NOTHING,
  responseDeserialize: () => null,
}

/** Receives in this process, which has nothing else to do while others are measured. */
export async function startDiscardReceiver(): Promise<DiscardReceiver> {
  const counts = { exports: 0, spans: 0, bytes: 0 }
  const cpu = process.cpuUsage()
  const server = new Server({ 'grpc.max_receive_message_length': -1 })
  server.addService(
    { Export: EXPORT },
    {
      Export: ({ request }: ServerUnaryCall<Buffer, null>, answer: sendUnaryData<null>) => {
        counts.exports++
        counts.bytes += request.length
        counts.spans += countSpans(request)
        answer(null, null)
      },
    },
  )
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure())
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () => {
      server.forceShutdown()
      const { user, system } = process.cpuUsage(cpu)
      return { ...counts, cpuMs: Math.round((user + system) / 1000) }
    },
  }
}

/** Field numbers of opentelemetry.proto: request.resource_spans = 1, resource_spans.scope_spans = 2, scope_spans.spans = 2. */
const PATH_TO_SPANS = [1, 2, 2]
const WIRE_VARINT = 0
const WIRE_64_BITS = 1
const WIRE_BYTES = 2
const WIRE_32_BITS = 5

/**
 * Number of spans in an encoded ExportTraceServiceRequest. It skips from length to length and decodes nothing, so it takes a few steps
 * per span.
 * @throws when the bytes are not such a message
 */
export function countSpans(message: Uint8Array): number {
  return countFields(message, 0, message.length, 0)
}

function countFields(bytes: Uint8Array, from: number, to: number, level: number): number {
  let count = 0
  let at = from
  /** Lengths and tags stay below 2^31: gRPC's messages do too. */
  const varint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('the message breaks off')
      if (shift < 31) value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < to) {
    const tag = varint()
    const wire = tag & 7
    if (wire === WIRE_VARINT) varint()
    else if (wire === WIRE_64_BITS) at += 8
    else if (wire === WIRE_32_BITS) at += 4
    else if (wire === WIRE_BYTES) {
      const end = varint() + at
      if (tag >>> 3 === PATH_TO_SPANS[level]) {
        count += level === PATH_TO_SPANS.length - 1 ? 1 : countFields(bytes, at, end, level + 1)
      }
      at = end
    } else throw new Error(`wire type ${wire}`)
  }
  if (at !== to) throw new Error('the message breaks off')
  return count
}
