// The rules on imports: domains import nothing of each other or of the runtime, and the files of one domain do not import each other in a circle.
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { displayPath, errorAt, type Finding, warningAt } from './finding.ts'
import { type Module, type Project, setupName } from './project.ts'
import { relativeTarget } from './scopes.ts'

/** The runtime's own sources, wherever it is installed. */
const RUNTIME_SOURCES = path.resolve(import.meta.dirname, '../..')
const ALLOWED = new Set(['#heddle', '#heddle/testing', '#heddle/kysely', '#heddle/drizzle'])

/** A domain imports `heddle`, which is `#heddle` in the repository of the runtime, packages and its own files. It imports no other domain and nothing from inside the runtime. */
export function domainIsolation(project: Project, toolsDir: string): Finding[] {
  const findings: Finding[] = []
  for (const module of project.modules) {
    for (const { specifier, line } of module.imports) {
      const problem = objection(module, specifier, project, path.resolve(toolsDir))
      if (problem) findings.push(errorAt('domain-isolation', module.file, line, problem))
    }
  }
  return findings
}

function objection(module: Module, specifier: string, project: Project, toolsDir: string): string | undefined {
  if (ALLOWED.has(specifier)) return undefined
  const who = setupName(module, project) === 'app' ? path.basename(module.file) : `the domain '${module.domain}'`
  const what = `${who} imports '${specifier}'`
  if (specifier.startsWith('#')) return `${what}, which is not 'heddle'`
  const target = targetPath(module.file, specifier)
  if (!target) return undefined
  const owner = project.domains.find(({ folders }) => folders.some((folder) => isInside(target, folder)))
  if (owner?.name === module.domain) return undefined
  if (owner) return `${what} of the domain '${owner.name}': domains talk by events`
  if (isInside(target, toolsDir)) return `${what}, the inside of a tool: take the tool in the constructor`
  const sources = path.basename(path.dirname(toolsDir)) === 'src' ? path.dirname(toolsDir) : RUNTIME_SOURCES
  if (isInside(target, sources) || isInside(target, RUNTIME_SOURCES)) {
    return `${what}, the inside of the runtime: import 'heddle'`
  }
  return undefined
}

/** The absolute path that a specifier refers to; undefined for a package. */
function targetPath(file: string, specifier: string): string | undefined {
  if (specifier.startsWith('file:')) {
    try {
      return fileURLToPath(specifier)
    } catch {
      // Not a path on this platform: it cannot name a file of the project.
      return undefined
    }
  }
  if (path.isAbsolute(specifier)) return path.normalize(specifier)
  return relativeTarget(file, specifier)
}

function isInside(target: string, folder: string): boolean {
  return target === folder || target.startsWith(folder + path.sep)
}

/** The shortest circle of each file that is in one, and in none that was found before. The first file of a circle comes again at its end. */
export function shortestCircles(next: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = []
  for (const start of next.keys()) {
    if (circles.some((circle) => circle.includes(start))) continue
    const circle = wayBack(start, next)
    if (circle !== undefined) circles.push(circle)
  }
  return circles
}

function wayBack(start: string, next: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const before = new Map<string, string>()
  const reached = new Set([start])
  // A set takes more while it is gone through.
  for (const at of reached) {
    for (const target of next.get(at) ?? []) {
      if (target === start) return [...wayTo(at, before), start]
      if (reached.has(target)) continue
      reached.add(target)
      before.set(target, at)
    }
  }
  return undefined
}

function wayTo(end: string, before: ReadonlyMap<string, string>): string[] {
  const way = [end]
  for (let at = before.get(end); at !== undefined; at = before.get(at)) way.unshift(at)
  return way
}

/** A warning: whether a circle fails depends on what its files do while they are loaded. */
export function moduleCircle(project: Project): Finding[] {
  const byFile = new Map(project.modules.map((module) => [module.file, module]))
  const loadedWith = (module: Module) =>
    module.imports.flatMap(({ specifier, line, typeOnly, late }) => {
      const file = typeOnly || late ? undefined : relativeTarget(module.file, specifier)
      return file && byFile.get(file)?.domain === module.domain ? [{ file, line }] : []
    })
  const next = new Map(project.modules.map((module) => [module.file, loadedWith(module).map(({ file }) => file)]))
  return shortestCircles(next).map((circle) => {
    const [first, second] = circle
    const module = byFile.get(first!)!
    const line = loadedWith(module).find(({ file }) => file === second)!.line
    const names = circle.map(displayPath).join(' → ')
    return warningAt('module-circle', module.file, line, `files import each other in a circle: ${names}`)
  })
}
