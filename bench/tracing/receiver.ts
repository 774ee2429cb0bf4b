/**
 * A receiver of traces that stores nothing: it accepts every export over OTLP/gRPC, counts its spans and drops it.
 * Sends its port when it listens, and its DiscardCounts at SIGTERM; it ends together with its parent.
 */
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import { countSpans } from './span-count.ts'

export interface DiscardCounts {
  exports: number
  spans: number
  bytes: number
  /** CPU time of the whole process, which receiving takes from the machine. */
  cpuMs: number
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

const counts: DiscardCounts = { exports: 0, spans: 0, bytes: 0, cpuMs: 0 }

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
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error
  process.send!(port)
})

process.once('SIGTERM', () => {
  server.forceShutdown()
  const { user, system } = process.cpuUsage()
  process.send!({ ...counts, cpuMs: Math.round((user + system) / 1000) })
})
process.on('disconnect', () => process.exit(0))
