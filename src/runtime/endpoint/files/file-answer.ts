// One file as an answer: unchanged, a range of it, a download.

import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { basename, extname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FileOptions } from '../../../contracts/http-request.ts'
import { HeddleError } from '../../../core/errors/catalogue.ts'
import { codeOf } from '../../../core/errors/description.ts'
import { withoutBlanks } from '../../../core/http/http-error.ts'
import { JSON_TYPE } from '../reply.ts'
import { type BodySource, FileBody } from '../stream/body-source.ts'

/** Bytes of a file, both ends included. */
interface ByteRange {
  readonly from: number
  readonly to: number
}

/** A member of a range set: `first-last`, `first-` or `-length`, with blanks around it. Empty members are allowed. */
const RANGE_SPEC = /^(?:(\d+)-(\d*)|-(\d+)|)$/

/**
 * The range that a request asks for; null for the whole file, also if the header is invalid or asks for several;
 * `unsatisfiable` if the file has none of the bytes. Source: RFC 9110, section 14, and 5.6.1 for lists.
 */
function byteRange(header: string | undefined, fileBytes: number): ByteRange | 'unsatisfiable' | null {
  if (header === undefined || !/^bytes=/i.test(header)) return null
  const size = BigInt(fileBytes)
  const found: ByteRange[] = []
  let asked = 0
  for (const member of header.slice('bytes='.length).split(',')) {
    const match = RANGE_SPEC.exec(withoutBlanks(member))
    if (match === null) return null
    const [text, first, last, suffix] = match
    if (text === '') continue
    asked++
    // A position may have any number of digits.
    if (first !== undefined) {
      const from = BigInt(first)
      const to = last ? BigInt(last) : size
      if (to < from && last) return null
      if (from < size) found.push({ from: Number(from), to: Number(to < size ? to : size - 1n) })
    } else if (BigInt(suffix!) > 0n) {
      // All of an empty file is no range that `content-range` could name.
      if (fileBytes === 0) return null
      const wanted = BigInt(suffix!)
      found.push({ from: Number(wanted < size ? size - wanted : 0n), to: fileBytes - 1 })
    }
  }
  if (asked === 0) return null
  if (found.length === 0) return 'unsatisfiable'
  return found.length === 1 ? found[0]! : null
}

/** Content types by the end of a name. Source: the IANA registry of media types, and RFC 9239 for JavaScript. */
const TYPES: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.bmp': 'image/bmp',
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.gz': 'application/gzip',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.ico': 'image/x-icon',
  '.ics': 'text/calendar',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.jsonld': 'application/ld+json',
  '.map': 'application/json',
  '.md': 'text/markdown',
  '.mjs': 'text/javascript',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.oga': 'audio/ogg',
  '.ogv': 'video/ogg',
  '.otf': 'font/otf',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.rss': 'application/rss+xml',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
  '.txt': 'text/plain',
  '.wasm': 'application/wasm',
  '.wav': 'audio/wav',
  '.webm': 'video/webm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.xml': 'application/xml',
  '.zip': 'application/zip',
}

const IS_TEXT = /^text\/|\/(?:json|xml|wasm)$|\+(?:json|xml)$/

/** The type of a file, by the end of its name alone. */
interface FileType {
  /** With its charset: text is UTF-8. */
  readonly contentType: string
  /** There may be a compressed file beside it. */
  readonly isText: boolean
}

/** @param extension in lower case, with its dot */
export function fileType(extension: string): FileType {
  const type = TYPES[extension] ?? 'application/octet-stream'
  const isText = IS_TEXT.test(type)
  const hasCharset = isText && (type.startsWith('text/') || type.endsWith('json'))
  return { contentType: hasCharset ? `${type}; charset=utf-8` : type, isText }
}

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

const isAbsence = (error: unknown): boolean => ABSENCES.has(codeOf(error) ?? '')

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
  const real = await realOf(path)
  return real === root || real?.startsWith(root.endsWith(sep) ? root : root + sep) ? real : null
}

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

const UNSATISFIABLE = Buffer.from(toJson({ success: false, error: 'The file has no such bytes' }))

/** A request that is answered with a file. */
interface FileRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  setStatus(status: number): void
  setHeader(name: string, value: string): void
  setCaching(value: string): void
  sendBinary(bytes: Uint8Array, type: string): undefined
  sendSource(file: BodySource): void
}

/** `context.sendFile`. @throws HTTP_NOT_FOUND */
export async function sendFile(path: string | URL, options: FileOptions, context: FileRequest): Promise<undefined> {
  const { root, type, cacheControl, download } = options
  const wanted = path instanceof URL ? fileURLToPath(path) : String(path)
  const real =
    root === undefined
      ? await realOf(resolve(wanted))
      : await pathWithin(await realpath(root instanceof URL ? fileURLToPath(root) : root), wanted)
  const file = real === null ? null : await openFile(real)
  if (file === null) throw notFound()
  try {
    if (!file.stats.isFile()) throw notFound()
    if (cacheControl === undefined) context.setCaching('no-cache')
    else context.setHeader('cache-control', cacheControl)
    if (download !== undefined && download !== false) {
      context.setHeader('content-disposition', attachment(download === true ? basename(wanted) : download))
    }
    await answerFile(file, context, type ?? fileType(extname(wanted).toLowerCase()).contentType, '')
  } catch (error) {
    await file.handle.close()
    throw error
  }
}

/**
 * Answers with an open file, or that it is unchanged, or with the range of it that is asked for. Takes the file over, unless it throws.
 * @param encoding of what is in the file; empty for none
 */
export async function answerFile(
  { handle, stats }: OpenFile,
  context: FileRequest,
  contentType: string,
  encoding: string,
): Promise<void> {
  const { headers } = context
  const tag = `"${stats.size.toString(36)}-${Math.trunc(stats.mtimeMs).toString(36)}${encoding && `-${encoding}`}"`
  const modified = new Date(Math.trunc(stats.mtimeMs / 1000) * 1000)
  context.setHeader('etag', tag)
  context.setHeader('last-modified', modified.toUTCString())
  if (hasFailed(headers, tag, modified)) throw new HeddleError('HTTP_PRECONDITION')
  if (isUnchanged(headers, tag, modified)) {
    context.setStatus(304)
    return handle.close()
  }
  context.setHeader('accept-ranges', 'bytes')
  context.setHeader('content-type', contentType)
  if (encoding !== '') context.setHeader('content-encoding', encoding)
  // For other methods than GET a range is ignored (section 14.2).
  const isSame =
    context.method === 'GET' && (headers['if-range'] === undefined || isRangeOf(headers['if-range'], tag, modified))
  const range = isSame ? byteRange(headers.range, stats.size) : null
  if (range === 'unsatisfiable') {
    await handle.close()
    context.setStatus(416)
    context.setHeader('content-range', `bytes */${stats.size}`)
    return context.sendBinary(UNSATISFIABLE, JSON_TYPE)
  }
  const { from, to } = range ?? { from: 0, to: stats.size - 1 }
  if (range !== null) {
    context.setStatus(206)
    context.setHeader('content-range', `bytes ${from}-${to}/${stats.size}`)
  }
  context.sendSource(new FileBody(handle, from, to - from + 1))
}

/**
 * True for a client that wants it only as it was. Source: RFC 9110, sections 13.1.1, 13.1.4 and 13.2.2; a weak tag is never the same.
 * @param modified null where only the tag tells
 */
export function hasFailed(headers: Readonly<Record<string, string>>, tag: string, modified: Date | null): boolean {
  const tags = headers['if-match']
  if (tags !== undefined) {
    const isStrong = !tag.startsWith('W/')
    return !listed(tags).some((each) => each === '*' || (isStrong && each === tag))
  }
  return modified !== null && modified.getTime() > Date.parse(headers['if-unmodified-since'] ?? '')
}

/**
 * True for a client that has it. Source: RFC 9110, section 13.2.2.
 * @param modified null where only the tag tells
 */
export function isUnchanged(headers: Readonly<Record<string, string>>, tag: string, modified: Date | null): boolean {
  const tags = headers['if-none-match']
  if (tags !== undefined) {
    const plain = tag.replace(/^W\//, '')
    return listed(tags).some((each) => each === '*' || each.replace(/^W\//, '') === plain)
  }
  return modified !== null && modified.getTime() <= Date.parse(headers['if-modified-since'] ?? '')
}

const listed = (tags: string): string[] => tags.split(',').map(withoutBlanks)

const isRangeOf = (condition: string, tag: string, modified: Date): boolean =>
  condition === tag || condition === modified.toUTCString()

async function realOf(path: string): Promise<string | null> {
  try {
    return await realpath(path)
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
}

/** Source: RFC 6266, section 4; RFC 8187 for names beyond ASCII. */
function attachment(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  if (ascii === name) return plain
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return `${plain}; filename*=UTF-8''${encoded}`
}
