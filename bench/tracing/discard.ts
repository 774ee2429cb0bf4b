import { once } from 'node:events'
import { forkModule, nextMessage } from '../child.ts'
import type { DiscardCounts } from './receiver.ts'

const NAME = 'the receiver of traces'
const STOP_TIMEOUT_MS = 5000

/** A receiver of traces in a separate process, which counts spans and drops them. */
export interface DiscardReceiver {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string
  /** Ends it. May be called twice. @returns what it has received */
  stop(): Promise<DiscardCounts>
}

/** @throws when it does not start. It ends together with this process in any case. */
export async function startDiscardReceiver(): Promise<DiscardReceiver> {
  const child = forkModule('tracing/receiver.ts')
  const exited = once(child, 'exit')
  const port = await nextMessage<number>(child, NAME)
  let counts: Promise<DiscardCounts> | undefined
  const stop = async (): Promise<DiscardCounts> => {
    child.kill('SIGTERM')
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    try {
      const said = await nextMessage<DiscardCounts>(child, NAME)
      child.disconnect()
      await exited
      return said
    } finally {
      clearTimeout(killer)
    }
  }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () => {
      counts ??= stop()
      return counts
    },
  }
}
