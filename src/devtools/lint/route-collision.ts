import { routeShapes } from '../../runtime/endpoint/route.ts'
import { displayPath, errorAt, type Finding } from './finding.ts'
import { type Module, type Project, pluginsByFile } from './project.ts'
import { excludeEachOther } from './scopes.ts'
import { type Literal, textsOf } from './texts.ts'
import { SHORT_FORMS } from './values.ts'

/** A route that a plugin registers under a path and method that the source shows. */
export interface StaticRoute {
  method: string
  path: string
  /** Names of the plugins that run the code: the plugin of the file, or the plugins that import the file. */
  plugins: readonly string[]
  module: Module
  line: number
  branches: readonly string[]
}

export function staticRoutes(project: Project): StaticRoute[] {
  const pluginsOf = pluginsByFile(project)
  return project.modules.flatMap((module) => {
    const plugins = [...(pluginsOf.get(module.file) ?? [])]
    if (plugins.length === 0) return []
    return module.toolCalls.flatMap(({ tool, method, args, line, branches }) =>
      tool === 'http'
        ? methodsOf(method, args).flatMap((verb) =>
            textsOf(args[0]).map((text): StaticRoute => {
              const path = verb === 'ALL' ? `${text.replace(/\/$/, '')}/*` : text
              return { method: verb, path, plugins, module, line, branches }
            }),
          )
        : [],
    )
  })
}

/** Two registrations of one method must not answer the same paths, whatever their parameters are called. */
export function routeCollision(project: Project): Finding[] {
  const findings: Finding[] = []
  const taken = new Map<string, StaticRoute[]>()
  for (const route of staticRoutes(project)) {
    const shapes = routeShapes(route.method, route.path)
    const before = shapes.flatMap((shape) => taken.get(shape) ?? [])
    const first = before.find(
      (other) => route.module.file !== other.module.file || !excludeEachOther(route.branches, other.branches),
    )
    if (first) {
      const other = `${describe(first)} (${displayPath(first.module.file)}:${first.line})`
      findings.push(
        errorAt('route-collision', route.module.file, route.line, `${describe(route)} collides with ${other}`),
      )
    } else for (const shape of shapes) taken.set(shape, [...(taken.get(shape) ?? []), route])
  }
  return findings
}

function methodsOf(call: string, args: readonly Literal[]): string[] {
  if (call === 'addStream') return ['GET']
  // An upgrade is not dispatched to the routes of `GET`, so the two do not collide.
  if (call === 'addWebSocket') return ['WEBSOCKET']
  if (call === 'mount') return ['ALL']
  if (SHORT_FORMS.includes(call)) return [call.toUpperCase()]
  return call === 'addEndpoint' ? textsOf(args[1]).map((method) => method.toUpperCase()) : []
}

function describe({ method, path, plugins }: StaticRoute): string {
  return `${method} ${path} of ${plugins.join(', ')}`
}
