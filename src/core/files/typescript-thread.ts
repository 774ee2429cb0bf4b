import { pathToFileURL } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a thread of its own on a source file. Node 20 does not take a `.ts` file for a worker, whatever its parent was started with:
 * the thread registers the loader first.
 */
export function startThread(file: string, options: Omit<WorkerOptions, 'eval'>): Worker {
  const url = JSON.stringify(pathToFileURL(file).href)
  // Found from here: a thread that is made of a text would look for it in the current folder.
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const start = `import(${loader}).then(({ register }) => { register(); return import(${url}) })`
  return new Worker(start, { ...options, eval: true })
}
