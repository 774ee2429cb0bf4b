import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { shown } from '../../core/errors/shown-path.ts'
import { frameOf, linesOf, placeOfText, type SourcePlace } from '../../core/errors/source-place.ts'

/** Files that are read at most: an application is not as large. */
const FILES_MAX = 500
/** `import … from './x.ts'`, `export … from './x.ts'`, `import './x.ts'`, `require('./x.ts')`; types are gone at run time. */
const IMPORT =
  /^[ \t]*(?:import|export)\s+(?!type\b)(?:[^'"`;]*?\sfrom\s*)?(['"])(\.{1,2}\/[^'"]+)\1|\brequire\(\s*(['"])(\.{1,2}\/[^'"]+)\3\s*\)/gm

/** Files that import each other, beginning with one of them, which also is the last. */
export type ModuleCycle = readonly string[]

/**
 * The shortest circle of imports that a file takes part in, or else the first one that it leads to; undefined when there is none.
 * Only relative imports count: packages do not import the files of an application.
 */
export function cycleFrom(file: string): ModuleCycle | undefined {
  const importsOf = new Map<string, string[]>()
  const waiting = [file]
  for (let next = waiting.shift(); next !== undefined && importsOf.size < FILES_MAX; next = waiting.shift()) {
    if (importsOf.has(next)) continue
    const imports = importsIn(next)
    importsOf.set(next, imports)
    waiting.push(...imports)
  }
  for (const start of importsOf.keys()) {
    const cycle = shortestWayBack(start, importsOf)
    if (cycle !== undefined) return cycle
  }
  return undefined
}

function shortestWayBack(start: string, importsOf: ReadonlyMap<string, readonly string[]>): ModuleCycle | undefined {
  const before = new Map<string, string>()
  const waiting = [start]
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    for (const next of importsOf.get(file) ?? []) {
      if (next === start) return wayTo(file, before, start)
      if (before.has(next)) continue
      before.set(next, file)
      waiting.push(next)
    }
  }
  return undefined
}

function wayTo(end: string, before: ReadonlyMap<string, string>, start: string): ModuleCycle {
  const way = [start]
  for (let file = end; file !== start; file = before.get(file)!) way.unshift(file)
  return [start, ...way]
}

function importsIn(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    // It is imported, and not there: another message says so.
    return []
  }
  return [...text.matchAll(IMPORT)].flatMap((found) => resolved(resolve(dirname(file), found[2] ?? found[4]!)) ?? [])
}

function resolved(path: string): string | undefined {
  const candidates = [path, path.replace(/\.js$/, '.ts'), `${path}.ts`, `${path}.js`, `${path}/index.ts`]
  return candidates.find((candidate) => /\.[cm]?[jt]s$/.test(candidate) && existsSync(candidate))
}

/** A name that was used before the file had run that makes it. */
const NOT_YET =
  /^Cannot access '([\w$]+)' before initialization|^([\w$]+) is not initialized|^Class extends value undefined/

/** Explains an error of a file that is loaded while its imports wait for it; undefined for any other error. */
export function cycleFault(
  error: Error,
  file: string,
): { mistake: string; place: SourcePlace | undefined; fix: string } | undefined {
  const found = NOT_YET.exec(error.message)
  if (found === null) return undefined
  const cycle = cycleFrom(file)
  if (cycle === undefined) return undefined
  const name = found[1] ?? found[2]
  const what = name ?? 'what they share'
  return {
    mistake: `${error.message}: these files import each other: ${cycle.map(shown).join(' → ')}`,
    place: placeOfUse(error, cycle, name),
    fix: `move ${what} into a file of its own that both import, or use it only in functions that run later.`,
  }
}

/** The innermost frame in one of the files whose line uses the name: those of the imports and exports only pass it on. */
function placeOfUse(error: Error, cycle: ModuleCycle, name = 'extends'): SourcePlace | undefined {
  const frames = (error.stack ?? '').split('\n').flatMap((text) => frameOf(text) ?? [])
  const own = frames.filter((frame) => cycle.includes(frame.file))
  const used = own.find(({ file, line }) => {
    const text = linesOf(file)[line - 1] ?? ''
    return text.includes(name) && !/^\s*(?:import|export)\b.*\bfrom\b/.test(text)
  })
  return used ?? own[0] ?? placeOfText(cycle[0]!, name)
}
