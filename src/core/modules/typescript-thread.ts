import { pathToFileURL } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a thread that runs a source file. Node 20 does not accept a `.ts` file for a worker, whatever loader its parent has, so the
 * thread registers the loader first. A file of the compiled runtime needs none.
 */
export function startThread(file: string, options: Omit<WorkerOptions, 'eval'>): Worker {
  if (file.endsWith('.js')) return new Worker(file, options)
  const url = JSON.stringify(pathToFileURL(file).href)
  // Resolved here, because a thread whose source is a text would look for the package in the current folder.
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const start = `import(${loader}).then(({ register }) => { register(); return import(${url}) })`
  return new Worker(start, { ...options, eval: true })
}
