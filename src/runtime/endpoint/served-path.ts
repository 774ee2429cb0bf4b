import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { isAbsence } from './open-file.ts'

/**
 * The real path of the file that a client asks for; null when the client must not have it, or it is not there.
 * @param root absolute, without symbolic links
 */
export async function pathWithin(root: string, wanted: string): Promise<string | null> {
  const segments = wanted.split('/')
  if (segments.at(-1) === '') segments.pop()
  for (const segment of segments) {
    if (segment === '' || segment.startsWith('.') || segment.includes('\\') || segment.includes('\0')) return null
  }
  return realWithin(root, join(root, ...segments))
}

/** Where a path leads; null when that is out of the folder. */
export async function realWithin(root: string, path: string): Promise<string | null> {
  let real: string
  try {
    real = await realpath(path)
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
  return real === root || real.startsWith(root.endsWith(sep) ? root : root + sep) ? real : null
}
