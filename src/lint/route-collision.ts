import { routeShape } from '../endpoint/route-shape.ts'
import { displayPath, errorAt, type Finding } from './finding.ts'
import { textOf } from './literal.ts'
import type { Plugin, Project } from './project.ts'

/** A route that a plugin registers under a path and method that the source shows. */
export interface StaticRoute {
  method: string
  path: string
  plugin: Plugin
  line: number
}

export function staticRoutes(project: Project): StaticRoute[] {
  return project.plugins.flatMap((plugin) =>
    plugin.toolCalls.flatMap(({ tool, method: call, args, line }): StaticRoute[] => {
      if (tool !== 'http') return []
      const path = textOf(args[0])
      const method = call === 'addStream' ? 'GET' : call === 'addEndpoint' ? textOf(args[1]) : undefined
      return path === undefined || method === undefined ? [] : [{ method: method.toUpperCase(), path, plugin, line }]
    }),
  )
}

/** No two registrations of one method answer the same paths, whatever they call their parameters. */
export function routeCollision(project: Project): Finding[] {
  const findings: Finding[] = []
  const taken = new Map<string, StaticRoute>()
  for (const route of staticRoutes(project)) {
    const key = routeShape(route.method, route.path)
    const first = taken.get(key)
    if (!first) taken.set(key, route)
    else {
      const other = `${describe(first)} (${displayPath(first.plugin.file)}:${first.line})`
      findings.push(
        errorAt('route-collision', route.plugin.file, route.line, `${describe(route)} collides with ${other}`),
      )
    }
  }
  return findings
}

function describe({ method, path, plugin }: StaticRoute): string {
  return `${method} ${path} of ${plugin.name}`
}
