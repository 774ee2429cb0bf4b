import { readFileSync } from 'node:fs'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shown } from './shown-path.ts'

/** A place in a source file. Line and column count from 1. */
export interface SourcePlace {
  file: string
  line: number
  column: number
}

const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/)?\/[^()]*?):(\d+):(\d+)\)?$/
/** The sources of the runtime, which do not concern the author of a plugin. */
const RUNTIME = fileURLToPath(new URL('../..', import.meta.url))

/** The innermost frame of an error below a folder, else the innermost one that belongs to neither the runtime nor a package. */
export function placeOf(error: unknown, folder: string): SourcePlace | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined
  const frames = error.stack.split('\n').flatMap((text) => frameOf(text) ?? [])
  return frames.find(({ file }) => file.startsWith(folder + sep)) ?? frames.find(({ file }) => isOfPlugin(file))
}

/** The place of one line of a stack; undefined for one without a file. */
export function frameOf(text: string): SourcePlace | undefined {
  const [, path, line, column] = FRAME.exec(text.trim()) ?? []
  if (path === undefined) return undefined
  const file = path.startsWith('file:') ? fileURLToPath(path) : path
  return { file, line: Number(line), column: Number(column) }
}

/** True for a file that belongs to neither the runtime nor a package. */
export function isOfPlugin(file: string | undefined): boolean {
  return file !== undefined && !file.startsWith(RUNTIME) && !file.includes(`${sep}node_modules${sep}`)
}

/** Frames between the code of a plugin and the host of a tool. */
const FRAMES = 40

/** Where the code of a plugin called a tool: `domains/shop/domain.ts:12`. */
export function callerPlace(): string {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES
  const place = placeInPlugin(new Error('here'))
  Error.stackTraceLimit = stackTraceLimit
  return place === undefined ? 'an unknown place' : `${shown(place.file)}:${place.line}`
}

/** The innermost frame that belongs to neither the runtime nor a package. */
export const placeInPlugin = (error: unknown): SourcePlace | undefined => placeOf(error, NOWHERE)

/** No folder. */
const NOWHERE = '\0'

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

export function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    // The file is gone, or never was one: only the place is shown.
    return []
  }
}
