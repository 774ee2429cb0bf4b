import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Why a prefix is not valid, beyond the rules for every path; undefined when it is. */
export function prefixFault(prefix: string): string | undefined {
  return /[:*%]/.test(prefix) ? "a prefix has no parameters, no '*' and no '%'" : undefined
}

/** The real path of a folder, or why it cannot be served. */
export function realFolder(directory: unknown): { path: string; fault: string | undefined } {
  if (typeof directory !== 'string' && !(directory instanceof URL)) {
    return { path: '', fault: 'the folder must be a path or a file: URL' }
  }
  let wanted = String(directory)
  try {
    wanted = directory instanceof URL ? fileURLToPath(directory) : resolve(directory)
    const path = realpathSync(wanted)
    return { path, fault: statSync(path).isDirectory() ? undefined : `${wanted} is no folder` }
  } catch (error) {
    const isAbsent = (error as { code?: unknown }).code === 'ENOENT'
    return { path: '', fault: isAbsent ? `there is no folder ${wanted}` : `${wanted}: ${(error as Error).message}` }
  }
}
