import path from 'node:path'
import { type Module, type Project, setupName } from './project.ts'

/** File → the plugins that run its code (`domain.ts` and `app.ts` count as such): the plugin in the file, and the plugins that import it, directly or through other files. */
export function pluginsByFile(project: Project): Map<string, Set<string>> {
  const byFile = new Map(project.modules.map((module) => [module.file, module]))
  const found = new Map<string, Set<string>>()
  const setups = project.modules.flatMap((module) => {
    const name = setupName(module, project)
    return name === undefined ? [] : [{ ...module, name }]
  })
  for (const plugin of [...project.plugins, ...setups]) {
    const pending: Module[] = [plugin]
    const reached = new Set<string>([plugin.file])
    for (let module = pending.pop(); module; module = pending.pop()) {
      found.set(module.file, (found.get(module.file) ?? new Set()).add(plugin.name))
      for (const { specifier } of module.imports) {
        const target = specifier.startsWith('.') ? path.resolve(path.dirname(module.file), specifier) : ''
        const imported = byFile.get(target)
        if (!imported || reached.has(target)) continue
        reached.add(target)
        pending.push(imported)
      }
    }
  }
  return found
}
