import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { DiscardCounts } from './receiver.ts'

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
  const child = fork(fileURLToPath(new URL('./receiver.ts', import.meta.url)), {
    execArgv: ['--import', import.meta.resolve('tsx'), '--import', import.meta.resolve('../orphan-guard.cjs')],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const closed = once(child, 'close').then(([code]) => {
    throw new Error(`the receiver of traces ended with code ${code}`)
  })
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const line = async () => JSON.parse((await Promise.race([lines.next(), closed])).value)
  const { port } = (await line()) as { port: number }
  let counts: Promise<DiscardCounts> | undefined
  const stop = async (): Promise<DiscardCounts> => {
    child.kill('SIGTERM')
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    try {
      const said = (await line()) as DiscardCounts
      await closed.catch(() => {})
      return said
    } finally {
      clearTimeout(killer)
    }
  }
  closed.catch(() => {})
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () => {
      counts ??= stop()
      return counts
    },
  }
}
