import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import type { Data } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { byteRange } from './byte-range.ts'
import type { RequestContext } from './context.ts'
import { FileBody } from './file-body.ts'
import { fileType } from './file-types.ts'

/** A file with a hash of its content in its name never changes: `app-3f9a1c77.js`. */
const HASHED_NAME = /[.-](?=[^.]*\d)(?=[^.]*[a-f])[0-9a-f]{8,64}\.\w+$/
const IMMUTABLE = 'public, max-age=31536000, immutable'
/** Encodings by preference: the smaller result first. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

interface OpenFile {
  readonly handle: FileHandle
  readonly stats: Stats
}

/** Serves the files of one folder, for one thread: no file whose name begins with a dot, and nothing outside of the folder. */
export class StaticFiles {
  readonly #root: string

  /** @param root absolute, without symbolic links */
  constructor(root: string) {
    this.#root = root
  }

  /** A handler for `<prefix>/*`. */
  async send(data: Data, context: RequestContext): Promise<void> {
    const path = await this.#find(String(data['*'] ?? ''))
    if (path === null) throw notFound()
    let file = await openFile(path)
    try {
      if (file?.stats.isDirectory()) {
        await file.handle.close()
        file = null
        // Relative addresses on its page would miss the folder.
        if (!context.path.endsWith('/')) return context.redirect(`${context.path}/`, 308)
        file = await this.#openIn(join(path, 'index.html'))
        await this.#answer(file, join(path, 'index.html'), context)
      } else {
        if (context.path.endsWith('/')) throw notFound()
        await this.#answer(file, path, context)
      }
    } catch (error) {
      await file?.handle.close()
      throw error
    }
  }

  /** The real path of the file that a client asks for; null when the client must not have it. */
  async #find(wanted: string): Promise<string | null> {
    const segments = wanted.split('/')
    if (segments.at(-1) === '') segments.pop()
    for (const segment of segments) {
      if (segment === '' || segment.startsWith('.') || segment.includes('\\') || segment.includes('\0')) return null
    }
    return this.#real(join(this.#root, ...segments))
  }

  async #real(path: string): Promise<string | null> {
    let real: string
    try {
      real = await realpath(path)
    } catch (error) {
      if (isAbsence(error)) return null
      throw error
    }
    return real === this.#root || real.startsWith(this.#root.endsWith(sep) ? this.#root : this.#root + sep)
      ? real
      : null
  }

  /** A file that may be a link: null when there is none, or it leads out of the folder. */
  async #openIn(path: string): Promise<OpenFile | null> {
    const real = await this.#real(path)
    return real === null ? null : openFile(real)
  }

  /** Takes the file over, unless it throws. */
  async #answer(file: OpenFile | null, path: string, context: RequestContext): Promise<void> {
    if (file === null || !file.stats.isFile()) throw notFound()
    const { headers } = context
    const { contentType, isText } = fileType(extname(path).toLowerCase())
    let chosen = file
    let encoding = ''
    // A range counts bytes of the uncompressed file.
    if (isText && headers.range === undefined) {
      const compressed = await this.#compressed(path, headers['accept-encoding'] ?? '', file.stats)
      if (compressed !== null) {
        await file.handle.close()
        chosen = compressed.file
        encoding = compressed.encoding
      }
    }
    const { handle, stats } = chosen
    try {
      const tag = `"${stats.size.toString(36)}-${Math.trunc(stats.mtimeMs).toString(36)}${encoding && `-${encoding}`}"`
      const modified = new Date(Math.trunc(stats.mtimeMs / 1000) * 1000)
      context.setHeader('cache-control', HASHED_NAME.test(path) ? IMMUTABLE : 'no-cache')
      context.setHeader('etag', tag)
      context.setHeader('last-modified', modified.toUTCString())
      if (isText) context.setHeader('vary', 'accept-encoding')
      if (isUnchanged(headers, tag, modified)) {
        context.setStatus(304)
        return await handle.close()
      }
      context.setHeader('accept-ranges', 'bytes')
      context.setHeader('content-type', contentType)
      if (encoding !== '') context.setHeader('content-encoding', encoding)
      const isSame = headers['if-range'] === undefined || isRangeOf(headers['if-range'], tag, modified)
      const range = isSame ? byteRange(headers.range, stats.size) : null
      if (range === 'unsatisfiable') {
        await handle.close()
        context.setStatus(416)
        context.setHeader('content-range', `bytes */${stats.size}`)
        context.setHeader('content-type', 'application/json; charset=utf-8')
        return context.sendBinary(UNSATISFIABLE, 'application/json; charset=utf-8')
      }
      const { from, to } = range ?? { from: 0, to: stats.size - 1 }
      if (range !== null) {
        context.setStatus(206)
        context.setHeader('content-range', `bytes ${from}-${to}/${stats.size}`)
      }
      context.sendFile(new FileBody(handle, from, to - from + 1))
    } catch (error) {
      if (chosen !== file) await handle.close()
      throw error
    }
  }

  /** The compressed file beside a file, when the client accepts it and it is not older than the file. */
  async #compressed(path: string, accepted: string, { mtimeMs }: Stats) {
    for (const [encoding, extension] of ENCODINGS) {
      if (!takes(accepted, encoding)) continue
      const file = await this.#openIn(path + extension)
      if (file === null) continue
      if (file.stats.isFile() && file.stats.mtimeMs >= mtimeMs) return { encoding, file }
      await file.handle.close()
    }
    return null
  }
}

const UNSATISFIABLE = Buffer.from(JSON.stringify({ success: false, error: 'The file has no such bytes' }))

const notFound = (): HeddleError => new HeddleError('HTTP_NOT_FOUND')

/** Opens the file and reads its type then: between a check and the opening it could be replaced. Null when there is none, or it must not be read. */
async function openFile(real: string): Promise<OpenFile | null> {
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

const isAbsence = (error: unknown): boolean => ABSENCES.has(String((error as { code?: unknown }).code))

/** Source: RFC 9110, section 13.2.2. */
function isUnchanged(headers: Readonly<Record<string, string>>, tag: string, modified: Date): boolean {
  const tags = headers['if-none-match']
  if (tags !== undefined) {
    return tags.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag)
  }
  const since = Date.parse(headers['if-modified-since'] ?? '')
  return modified.getTime() <= since
}

const isRangeOf = (condition: string, tag: string, modified: Date): boolean =>
  condition === tag || condition === modified.toUTCString()

/** Source: RFC 9110, section 12.5.3; without preferences among those that are taken. */
function takes(accepted: string, encoding: string): boolean {
  for (const part of accepted.toLowerCase().split(',')) {
    const [name, ...parameters] = part.split(';').map((text) => text.trim())
    if (name === encoding) return !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  }
  return false
}
