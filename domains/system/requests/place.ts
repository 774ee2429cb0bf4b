import { readFile } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A place in the code of a plugin. */
export interface Place {
  /** Relative to the current folder where it is below that. */
  file: string
  /** Absolute. */
  path: string
  line: number
  column: number
}

/** A line around a place. */
export interface SourceLine {
  line: number
  text: string
  isFault: boolean
}

/** `file:line:column` at the end of a frame, in brackets or not. */
const FRAME = /\(?((?:file:\/\/)?[^\s()]+):(\d+):(\d+)\)?$/
/** Lines that are shown before and after it, and characters of one. */
const AROUND = 4
const LINE_MAX = 300

/** The innermost place of a stack in one of the folders; null where there is none. */
export function placeOf(stack: readonly string[], folders: readonly string[]): Place | null {
  for (const frame of stack) {
    const found = FRAME.exec(frame.trim())
    if (found === null) continue
    const path = found[1]!.startsWith('file://') ? fileURLToPath(found[1]!) : resolve(found[1]!)
    const isOwn = folders.some((folder) => path.startsWith(folder + sep)) && !path.includes(`${sep}node_modules${sep}`)
    if (isOwn) return { file: shortPath(path), path, line: Number(found[2]), column: Number(found[3]) }
  }
  return null
}

function shortPath(file: string): string {
  const short = relative(process.cwd(), file)
  return short.startsWith('..') ? file : short
}

/** The lines around a place, as the file has them now; empty where it cannot be read. */
export async function sourceAround({ path, line }: Place): Promise<SourceLine[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch {
    return []
  }
  const lines = text.split('\n')
  const from = Math.max(1, line - AROUND)
  return lines.slice(from - 1, line + AROUND).map((each, n) => ({
    line: from + n,
    text: each.slice(0, LINE_MAX),
    isFault: from + n === line,
  }))
}
