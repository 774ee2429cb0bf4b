import { subscribe } from 'node:diagnostics_channel'
import type { Worker } from 'node:worker_threads'
import { causality } from '../core/causality/context.ts'
import type { ToPrimary } from '../transport/messages.ts'

/** Threads that plugins have started from this one. Node ends them with it. */
const threads = new Set<Worker>()

/** Tells the primary of each thread that plugins start. */
export function watchThreads(post: (message: ToPrimary) => void): void {
  subscribe('worker_threads', (message) => {
    const { worker } = message as { worker: Worker }
    const { threadId } = worker
    const { plugin = null, handler = null } = causality.getStore()?.origin ?? {}
    threads.add(worker)
    post({ type: 'thread-started', threadId, starter: { plugin, handler } })
    worker.once('exit', () => {
      threads.delete(worker)
      post({ type: 'thread-ended', threadId })
    })
  })
}

/** They keep the loop of this thread no longer. */
export function releaseThreads(): void {
  for (const thread of threads) thread.unref()
}
