// Lines of plugin code, in stacks and in files.

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readable, stackOf } from './description.ts'

/** A path, as messages show it: relative to the current folder. */
export function shown(path: string): string {
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}

/** A place in the code of a plugin. */
export interface PluginPlace extends SourcePlace {
  /** Relative to the current folder where it is below that. */
  file: string
  /** Absolute. */
  path: string
}

/** A line around a place. */
export interface SourceLine {
  line: number
  text: string
  isFault: boolean
}

/** `domains/shop/plugins/buy.ts:12:5`: a place as it is shown, not as a frame of a stack. */
const SHOWN = /^([^\s()]+):(\d+):(\d+)$/
/** Lines that are shown before and after it, and characters of one. */
const AROUND = 4
const LINE_MAX = 300

/**
 * The innermost place of a stack in one of the folders, and in no package; null where there is none.
 * @param stack frames, or places as they are shown
 * @param folders absolute
 */
export function pluginPlace(stack: readonly string[], folders: readonly string[]): PluginPlace | null {
  for (const text of stack) {
    const found = frameOf(text) ?? shownPlace(text.trim())
    if (found === undefined) continue
    const { file: path, line, column } = found
    const isOwn = folders.some((folder) => path.startsWith(folder + sep)) && !path.includes(`${sep}node_modules${sep}`)
    if (isOwn) return { file: shown(path), path, line, column }
  }
  return null
}

function shownPlace(text: string): SourcePlace | undefined {
  const [, path, line, column] = SHOWN.exec(text) ?? []
  return path === undefined ? undefined : { file: resolve(path), line: Number(line), column: Number(column) }
}

/** The lines around a place, as the file has them now; empty where it cannot be read. */
export async function sourceAround({ path, line }: PluginPlace): Promise<SourceLine[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch {
    return []
  }
  const from = Math.max(1, line - AROUND)
  const lines = text.split('\n').slice(from - 1, line + AROUND)
  return lines.map((each, n) => ({ line: from + n, text: each.slice(0, LINE_MAX), isFault: from + n === line }))
}

/** The path of a text that was evaluated. */
export const ANONYMOUS = '<anonymous>'

// Taken before plugins can replace them.
const { parse } = JSON
/** Assigns where that is allowed, and throws nothing where it is not. */
const { set: setMember } = Reflect

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
  return url.startsWith('file:') ? (readable(() => fileURLToPath(url)) ?? url) : url
}

/** A place in a source file. Line and column count from 1. */
export interface SourcePlace {
  file: string
  line: number
  column: number
}

const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/)?\/[^()]*?):(\d+):(\d+)\)?$/
/** The sources of the runtime, which do not concern the author of a plugin. */
const RUNTIME = fileURLToPath(new URL('../..', import.meta.url))

/** The lines of a stack that follow its message, which may have any number of lines itself. */
export const frameLines = (stack: unknown): string[] =>
  typeof stack === 'string' ? stack.split('\n').filter((line) => /^ {4}at /.test(line)) : []

/** The places of a stack, the innermost first. */
export const framesOf = (error: unknown): SourcePlace[] =>
  frameLines(stackOf(error)).flatMap((line) => frameOf(line) ?? [])

/** The innermost frame of an error below a folder, else the innermost one that belongs to neither the runtime nor a package. */
export const placeOf = (error: unknown, folder: string): SourcePlace | undefined =>
  framesOf(error).find(({ file }) => file.startsWith(folder + sep)) ?? placeInPlugin(error)

/** The place of one line of a stack; undefined for one without a file. */
export function frameOf(text: string): SourcePlace | undefined {
  const [, path, line, column] = FRAME.exec(text.trim()) ?? []
  if (path === undefined) return undefined
  const file = path.startsWith('file:') ? fileURLToPath(path) : path
  return { file, line: Number(line), column: Number(column) }
}

/** True for a file that belongs to neither the runtime nor a package. */
export function isOfPlugin(file: string | undefined): boolean {
  return file !== undefined && !isOfRuntime(file) && !file.includes(`${sep}node_modules${sep}`)
}

/** Where the package has been compiled from, as its source maps name it. */
const SOURCES = RUNTIME.replace(/dist[\\/](src[\\/])$/, '$1')

export const isOfRuntime = (file: string): boolean => file.startsWith(RUNTIME) || file.startsWith(SOURCES)

/** Most frames that anything in the runtime asks for. With frozen builtins every stack has so many. */
export const FRAMES_MAX = 200

/** The frames of the code that calls this, `limit` of them. Frozen builtins keep the limit that the thread began with. */
export function framesHere(limit: number): SourcePlace[] {
  const { stackTraceLimit } = Error
  setMember(Error, 'stackTraceLimit', limit)
  const [, ...frames] = framesOf(new Error('here'))
  setMember(Error, 'stackTraceLimit', stackTraceLimit)
  return frames
}

/** Raises the frames that errors keep, where that can be changed. */
export function keepFrames(frames: number): void {
  setMember(Error, 'stackTraceLimit', Math.max(Error.stackTraceLimit, frames))
}

/** Frames between the code of a plugin and the host of a tool. */
const FRAMES = 40

/** Where the code of a plugin called a tool: `domains/shop/domain.ts:12`. */
export function callerPlace(): string {
  const place = placeIn(framesHere(FRAMES))
  return place === undefined ? 'an unknown place' : `${shown(place.file)}:${place.line}`
}

/** The innermost frame that belongs to neither the runtime nor a package. */
export const placeInPlugin = (error: unknown): SourcePlace | undefined => placeIn(framesOf(error))

const placeIn = (frames: readonly SourcePlace[]): SourcePlace | undefined => frames.find(({ file }) => isOfPlugin(file))

/** Where a text stands first in a file. */
export function placeOfText(file: string, text: string): SourcePlace | undefined {
  const lines = linesOf(file)
  const index = lines.findIndex((line) => line.includes(text))
  return index < 0 ? undefined : { file, line: index + 1, column: lines[index]!.indexOf(text) + 1 }
}

/** `domains/shop/plugins/buy.ts:12:5` */
export function placeText({ file, line, column }: SourcePlace): string {
  return `${shown(file.startsWith('file:') ? fileURLToPath(file) : file)}:${line}:${column}`
}

/** `domains/a/plugins/b.ts:4:15`, and below it the line itself with a mark under the column. */
export function showPlace({ file, line, column }: SourcePlace): string[] {
  const head = `${shown(file)}:${line}:${column}`
  const text = linesOf(file)[line - 1]
  if (text === undefined || text.trim() === '') return [head]
  const number = `${line} | `
  const indent = text.length - text.trimStart().length
  const mark = ' '.repeat(number.length + Math.max(0, column - 1 - indent))
  return [head, `  ${number}${text.trim()}`, `  ${mark}^`]
}

/** None where the file is gone, or never was one: only the place is shown. */
export const linesOf = (file: string): string[] => readable(() => readFileSync(file, 'utf8').split('\n')) ?? []

/** Where a function stood, in the source as it was written. `file`: an absolute path; `node:…` inside Node; `<anonymous>` for evaluated text. */
export interface StackFrame extends SourcePlace {
  function: string
}

/** Frames of a stack that are kept, from the innermost on. */
export const STACK_MAX_FRAMES = 32

/** `at name (place:1:2)`, and `at place:1:2` for a function without a name. */
const NAMED = /^\s*at (.+?) \((.+):(\d+):(\d+)\)$/
const NAMELESS = /^\s*at (.+):(\d+):(\d+)$/
/** A frame's line has at most this many characters. The message of an error is searched as well, and may be long. */
const FRAME_MAX_CHARS = 1000

/**
 * The frames in the text of an error's `stack`, at most STACK_MAX_FRAMES. Async functions that wait for the failed one count as frames.
 * Frames without a place (native functions, `Promise.all`) are left out.
 */
export function framesOfStack(stack: string): StackFrame[] {
  const frames: StackFrame[] = []
  for (const text of stack.split('\n')) {
    if (text.length > FRAME_MAX_CHARS) continue
    const named = NAMED.exec(text)
    const [place, line, column] = (named ?? NAMELESS.exec(text))?.slice(named ? 2 : 1) ?? []
    if (place === undefined) continue
    frames.push({
      function: named?.[1]?.replace(/^async /, '') ?? ANONYMOUS,
      // Evaluated text: `eval at name (place), <anonymous>`.
      file: pathOf(place.startsWith('eval at ') ? ANONYMOUS : place.replace(/^async /, '')),
      line: Number(line),
      column: Number(column),
    })
    if (frames.length === STACK_MAX_FRAMES) break
  }
  return frames
}

/** `name (domains/x/plugins/y.ts:12:5)` */
export const shownFrame = (frame: StackFrame): string => `${frame.function} (${placeText(frame)})`
