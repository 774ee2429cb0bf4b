import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

const PRELOAD = fileURLToPath(new URL('../../preload.cjs', import.meta.url))

/** Starts a thread that runs a source file. Node does not accept every `.ts` file for a thread, so the thread loads it after the loader. */
export function startThread(file: string, options: Omit<WorkerOptions, 'eval' | 'execArgv'>): Worker {
  const start = [PRELOAD, file].map((path) => `require(${JSON.stringify(path)})`).join('\n')
  return new Worker(start, { ...options, eval: true, execArgv: [] })
}
