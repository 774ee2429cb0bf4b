// A folder whose files are served.
import type { Stats } from 'node:fs'
import { extname, join } from 'node:path'
import type { Endpoint, Handler, StaticMount } from '../../../contracts/http.ts'
import type { Data } from '../../../contracts/http-request.ts'
import type { RequestContext } from '../context.ts'
import { takes } from '../encodings.ts'
import { answerFile, fileType, notFound, type OpenFile, openFile, pathWithin, realWithin } from './file-answer.ts'

/** A file with a hash of its content in its name never changes: `app-3f9a1c77.js`. */
const HASHED_NAME = /[.-](?=[^.]*\d)(?=[^.]*[a-f])[0-9a-f]{8,64}\.\w+$/
const IMMUTABLE = 'public, max-age=31536000, immutable'
/** Encodings by preference: the smaller result first. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/**
 * Sends a file of a folder for `<prefix>/*`: none whose name begins with a dot, and nothing outside of the folder.
 * @param root absolute, without symbolic links
 */
async function send(root: string, data: Data, context: RequestContext): Promise<void> {
  const path = await pathWithin(root, String(data['*'] ?? ''))
  if (path === null) throw notFound()
  let file = await openFile(path)
  try {
    if (file?.stats.isDirectory()) {
      await file.handle.close()
      file = null
      // Relative addresses on its page would miss the folder.
      if (!context.path.endsWith('/')) return context.redirect(`${context.path}/`, 308)
      file = await openIn(root, join(path, 'index.html'))
      await answer(root, file, join(path, 'index.html'), context)
    } else {
      if (context.path.endsWith('/')) throw notFound()
      await answer(root, file, path, context)
    }
  } catch (error) {
    await file?.handle.close()
    throw error
  }
}

/** A file that may be a link: null when there is none, or it leads out of the folder. */
async function openIn(root: string, path: string): Promise<OpenFile | null> {
  const real = await realWithin(root, path)
  return real === null ? null : openFile(real)
}

/** Takes the file over, unless it throws. */
async function answer(root: string, file: OpenFile | null, path: string, context: RequestContext): Promise<void> {
  if (file === null || !file.stats.isFile()) throw notFound()
  const { headers } = context
  const { contentType, isText } = fileType(extname(path).toLowerCase())
  let chosen = file
  let encoding = ''
  // A range counts bytes of the uncompressed file.
  if (isText && headers.range === undefined) {
    const compressed = await compressedFile(root, path, headers['accept-encoding'] ?? '', file.stats)
    if (compressed !== null) {
      await file.handle.close()
      chosen = compressed.file
      encoding = compressed.encoding
    }
  }
  try {
    context.setCaching(HASHED_NAME.test(path) ? IMMUTABLE : 'no-cache')
    if (isText) context.setHeader('vary', 'accept-encoding')
    await answerFile(chosen, context, contentType, encoding)
  } catch (error) {
    if (chosen !== file) await chosen.handle.close()
    throw error
  }
}

/** The compressed file beside a file, when the client accepts it and it is not older than the file. */
async function compressedFile(root: string, path: string, accepted: string, { mtimeMs }: Stats) {
  for (const [encoding, extension] of ENCODINGS) {
    if (!takes(accepted, encoding)) continue
    const file = await openIn(root, path + extension)
    if (file === null) continue
    if (file.stats.isFile() && file.stats.mtimeMs >= mtimeMs) return { encoding, file }
    await file.handle.close()
  }
  return null
}

const SUMMARY = 'Files of a folder'
const DESCRIPTION = 'With its type, and a part of it where the client asks for one.'

/** The endpoints that serve a folder: what is under its prefix, and the prefix itself. */
export function mountEndpoints({ owner, prefix, directory }: StaticMount): Endpoint[] {
  const endpoint = (path: string, handler: Handler): Endpoint => ({
    ...{ kind: 'endpoint', owner, method: 'GET', path, handler, isFolder: true },
    options: { summary: SUMMARY, description: DESCRIPTION },
  })
  const rest = endpoint(`${prefix}/*`, (data, context) => send(directory, data, context as RequestContext))
  if (prefix === '') return [rest]
  // Relative addresses of its pages need the slash.
  return [rest, endpoint(prefix, (_data, context) => context.redirect(`${prefix}/`, 308))]
}
