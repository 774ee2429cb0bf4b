import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The path of a text that was evaluated. */
export const ANONYMOUS = '<anonymous>'

// Taken before plugins can replace it.
const { parse } = JSON

/** A place in a script as V8 names it, counted from 0, in the source as it was written, counted from 1. @param url of the script, empty for text that was evaluated */
export function placeInSource(
  url: string,
  map: SourceMap | null,
  lineNumber: number,
  columnNumber: number,
): { file: string; line: number; column: number } {
  const origin = map?.findEntry(lineNumber, columnNumber)
  return origin !== undefined && 'originalLine' in origin
    ? {
        file: sourcePath(origin.originalSource, url),
        line: origin.originalLine + 1,
        column: origin.originalColumn + 1,
      }
    : { file: pathOf(url), line: lineNumber + 1, column: columnNumber + 1 }
}

/**
 * The source map of a text that a loader has made: in the text itself, as tsx puts it, or in a file of its own, as the runtime does. A map that
 * lies beside its script is not read: the script is a file too.
 */
export function sourceMap(url = ''): SourceMap | null {
  try {
    const json = url.startsWith('file:') ? readFileSync(fileURLToPath(url), 'utf8') : inlineJson(url)
    return json === null ? null : new SourceMap(parse(json) as SourceMapPayload)
  } catch {
    // The map is damaged, or somebody has removed it with all that is kept.
    return null
  }
}

function inlineJson(url: string): string | null {
  const [, encoding, body] = /^data:application\/json[^,]*?(;base64)?,(.*)$/s.exec(url) ?? []
  if (body === undefined) return null
  return encoding === undefined ? decodeURIComponent(body) : Buffer.from(body, 'base64').toString()
}

/** @param source as the map names it: a path, a URL, or relative to the script */
function sourcePath(source: string, scriptUrl: string): string {
  if (isAbsolute(source)) return source
  return URL.canParse(source, scriptUrl) ? pathOf(new URL(source, scriptUrl).href) : source
}

export function pathOf(url: string): string {
  if (url === '') return ANONYMOUS
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}
