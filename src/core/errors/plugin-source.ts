import { readFile } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { shown } from './shown-path.ts'
import { frameOf, type SourcePlace } from './source-place.ts'

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
