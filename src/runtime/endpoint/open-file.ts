import { constants, type Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { HeddleError } from '../../core/errors/catalogue.ts'

export interface OpenFile {
  readonly handle: FileHandle
  readonly stats: Stats
}

export const notFound = (): HeddleError => new HeddleError('HTTP_NOT_FOUND')

/** Opens the file and reads its type then: between a check and the opening it could be replaced. Null when there is none, or it must not be read. */
export async function openFile(real: string): Promise<OpenFile | null> {
  let handle: FileHandle
  try {
    // Without O_NONBLOCK a pipe would keep a thread of the pool waiting. Links have been followed before.
    handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
  try {
    return { handle, stats: await handle.stat() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

const ABSENCES = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EINVAL'])

export const isAbsence = (error: unknown): boolean => ABSENCES.has(String((error as { code?: unknown }).code))
