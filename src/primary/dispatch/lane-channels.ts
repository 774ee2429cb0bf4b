import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { createAnswerCell } from '../../transport/memory/answer-cell.ts'
import { createFlightRecorder } from '../../transport/memory/flight-recorder.ts'
import { createHeartbeat } from '../../transport/memory/heartbeat.ts'
import { createRing } from '../../transport/memory/spsc-ring.ts'
import type { LaneInit } from '../../transport/messages.ts'

/** Bytes of one ring: about 2,000 requests with a browser's headers. */
export const RING_BYTES = 1 << 20

/** The channels as the lane's thread gets them. The ports are transferred. */
export type ThreadSide = Pick<LaneInit, 'port' | 'bulk' | 'inbound' | 'outbound' | 'heartbeat' | 'address' | 'flight'>

/** Everything through which the primary and one lane reach each other: two ports, two rings, and the other shared memory. */
export interface LaneChannels {
  /** Messages and the doorbell. */
  readonly port: MessagePort
  /** Bodies that are too large for the rings. */
  readonly bulk: MessagePort
  readonly threadSide: ThreadSide
}

export function createLaneChannels(): LaneChannels {
  const control = new MessageChannel()
  const bulk = new MessageChannel()
  return {
    port: control.port1,
    bulk: bulk.port1,
    threadSide: {
      port: control.port2,
      bulk: bulk.port2,
      inbound: createRing(RING_BYTES),
      outbound: createRing(RING_BYTES),
      heartbeat: createHeartbeat(),
      address: createAnswerCell(),
      flight: createFlightRecorder(),
    },
  }
}
