import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SavedFile, SaveOptions } from '../../contracts/request-body.ts'
import { tooLarge } from './gathered-bytes.ts'

/** Writes what comes to a file of another name in the same folder, and renames it when all is on the disk. Nothing stays when it fails. */
export async function saveToFile(
  chunks: AsyncIterable<Buffer>,
  path: string | URL,
  { maxBytes = Number.POSITIVE_INFINITY }: SaveOptions = {},
): Promise<SavedFile> {
  const target = path instanceof URL ? fileURLToPath(path) : resolve(path)
  const unfinished = join(dirname(target), `.upload-${randomBytes(8).toString('hex')}.part`)
  const file = await open(unfinished, 'wx')
  try {
    let bytes = 0
    try {
      for await (const chunk of chunks) {
        bytes += chunk.byteLength
        if (bytes > maxBytes) throw tooLarge(maxBytes)
        await file.appendFile(chunk)
      }
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(unfinished, target)
    return { path: target, bytes }
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}
