import { relative } from 'node:path'

/** A path, as messages show it: relative to the current folder. */
export function shown(path: string): string {
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}
