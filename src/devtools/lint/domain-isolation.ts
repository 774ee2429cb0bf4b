import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorAt, type Finding } from './finding.ts'
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
