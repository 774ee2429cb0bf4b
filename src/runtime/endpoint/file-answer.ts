import { realpath } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FileOptions } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { withoutBlanks } from '../../core/http/header-text.ts'
import { byteRange } from './byte-range.ts'
import type { RequestContext } from './context.ts'
import { FileBody } from './file-body.ts'
import { fileType } from './file-types.ts'
import { isAbsence, notFound, type OpenFile, openFile } from './open-file.ts'
import { pathWithin } from './served-path.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

const UNSATISFIABLE = Buffer.from(toJson({ success: false, error: 'The file has no such bytes' }))
const JSON_TYPE = 'application/json; charset=utf-8'

/** `context.sendFile`. @throws HTTP_NOT_FOUND */
export async function sendFile(path: string | URL, options: FileOptions, context: RequestContext): Promise<undefined> {
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
  context: RequestContext,
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
    return !tags.split(',').some((each) => withoutBlanks(each) === '*' || (isStrong && withoutBlanks(each) === tag))
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
    return tags
      .split(',')
      .some((each) => withoutBlanks(each) === '*' || withoutBlanks(each).replace(/^W\//, '') === plain)
  }
  return modified !== null && modified.getTime() <= Date.parse(headers['if-modified-since'] ?? '')
}

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
