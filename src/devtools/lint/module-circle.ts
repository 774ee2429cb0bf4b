// Files of one domain that import each other in a circle: one of them runs before what it imports is there.
import { displayPath, type Finding, warningAt } from './finding.ts'
import type { Module, Project } from './project.ts'
import { relativeTarget } from './scopes.ts'

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
