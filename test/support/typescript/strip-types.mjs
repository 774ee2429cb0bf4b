import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { strip } from './strip.cjs'

const TYPESCRIPT = /^file:.*\.ts(?:\?|$)/

/** The hook of node:module for the main thread. */
export async function load(url, context, next) {
  if (!TYPESCRIPT.test(url)) return next(url, context)
  const path = fileURLToPath(url)
  return { format: 'module', source: strip(path, readFileSync(path, 'utf8'), 'esm'), shortCircuit: true }
}
