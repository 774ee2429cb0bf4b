import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { findTools, type ToolFolder } from './discover.ts'

/** The first of a tool's class, as the scaffolding and the shipped tools write it: the code must not run, because its packages may be missing. */
const NAME = /(?:^|[{;])\s*(?:(?:readonly|override|public)\s+)*name(?:\s*:\s*\w+)?\s*=\s*(['"])([\w-]+)\1/m

/**
 * The tools of a process: those of the tools folder, those of the application, and of some tools the implementation that a setting chooses. No folder
 * is moved for that.
 * @param toolsDir the folder of the active tools; the parked ones are in `extras/` beside it
 * @param choice TOOLS: implementations by their folders' names, separated by commas, each as `postgres` or `db=postgres`
 * @throws CONFIG_INVALID for an implementation that is not there, or is one of another tool
 */
export function activeTools(toolsDir: string, choice: string | undefined): ToolFolder[] {
  const own = ownToolsFolder()
  const extras = join(dirname(toolsDir), 'extras')
  let active = findTools(toolsDir)
  const put = (folder: ToolFolder): void => {
    const name = toolNameOf(folder)
    active = [...active.filter((other) => toolNameOf(other) !== name || name === null), folder]
  }
  if (own !== null) findTools(own).forEach(put)
  const known = [...active, ...(existsSync(extras) ? findTools(extras) : [])]
  for (const wanted of choice?.split(',').filter((item) => item.trim() !== '') ?? []) {
    const [implementation, tool] = wanted.trim().split('=').reverse() as [string, string | undefined]
    const folder = known.find(({ path }) => basename(path) === implementation)
    if (folder === undefined) {
      const names = known.map(({ path }) => basename(path)).sort()
      throw new HeddleError(
        'CONFIG_INVALID',
        `TOOLS: there is no implementation ${implementation}, but ${names.join(', ')}`,
      )
    }
    const name = toolNameOf(folder)
    if (tool !== undefined && tool !== name) {
      throw new HeddleError(
        'CONFIG_INVALID',
        `TOOLS: ${implementation} is an implementation of ${name}, not of ${tool}`,
      )
    }
    put(folder)
  }
  return active.sort((a, b) => (basename(a.path) < basename(b.path) ? -1 : 1))
}

/** `tools/` of an application. Null in the repository, where the folder of the runtime is for everybody's tools, and where there is none. */
export function ownToolsFolder(): string | null {
  const folder = resolve('tools')
  return import.meta.url.endsWith('.js') && existsSync(folder) ? folder : null
}

/** The name under which plugins get a tool; null when its source does not show it. */
export function toolNameOf({ file }: ToolFolder): string | null {
  return NAME.exec(readFileSync(file, 'utf8'))?.[2] ?? null
}
