// Finds tools and plugin files, and loads tools.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Tool, ToolClass, ToolRuntime } from '../../contracts/tool.ts'
import { nearestName } from '../../core/config/nearest-name.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { type DomainPart, foldersOf, loadModule, moduleIn, partsOf } from '../../core/modules/domains.ts'
import { packageFault } from '../../core/modules/optional-package.ts'

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
      throw invalidChoice(`there is no implementation ${implementation}, but ${names.join(', ')}`)
    }
    const name = toolNameOf(folder)
    if (tool !== undefined && tool !== name) {
      throw invalidChoice(`${implementation} is an implementation of ${name}, not of ${tool}`)
    }
    put(folder)
  }
  return active.sort((a, b) => (basename(a.path) < basename(b.path) ? -1 : 1))
}

const invalidChoice = (why: string): HeddleError => new HeddleError('CONFIG_INVALID', `TOOLS: ${why}`)

/** `tools/` of an application. Null in the repository, where the folder of the runtime is for everybody's tools, and where there is none. */
export function ownToolsFolder(): string | null {
  const folder = resolve('tools')
  return import.meta.url.endsWith('.js') && existsSync(folder) ? folder : null
}

/** The name under which plugins get a tool; null when its source does not show it. */
export function toolNameOf({ file }: ToolFolder): string | null {
  return NAME.exec(readFileSync(file, 'utf8'))?.[2] ?? null
}

/** A folder that holds a tool. */
export interface ToolFolder {
  path: string
  file: string
}

/** A file that holds a plugin. */
export interface PluginFile extends DomainPart {
  /** The thread that hosts it, read from the text: the code of a worker plugin must not even be loaded in the primary. */
  thread: 'primary' | 'worker'
}

const PRIMARY_CLASS = /\bstatic\s+(?:(?:override|readonly)\s+)*thread\s*(?::[^=]+)?=\s*(['"`])primary\1/
/** `plugin(…, { thread: 'primary' })` */
const PRIMARY_FUNCTION = /^export\s+default\s+plugin\b[\s\S]*,\s*\{[^{}]*\bthread\s*:\s*(['"`])primary\1/m

/** Folders of the tools directory, in the order of their names. */
export function findTools(toolsDir: string): ToolFolder[] {
  if (!existsSync(toolsDir)) throw new HeddleError('CONFIG_INVALID', `TOOLS_DIR: there is no folder ${toolsDir}`)
  return foldersOf(toolsDir).flatMap((name) => {
    const path = join(toolsDir, name)
    const file = moduleIn(path, 'index')
    return file === undefined ? [] : [{ path, file }]
  })
}

/** Loads a tool's class and makes its instance. @throws TOOL_INVALID that names the folder, PACKAGE_MISSING */
export async function loadTool(folder: ToolFolder, runtimeFor: (name: () => string) => ToolRuntime): Promise<Tool> {
  const module = await loadModule(folder.file).catch((error) => {
    throw packageFault(error, `The tool ${basename(folder.path)}`)
  })
  if (typeof module.default !== 'function') {
    throw new HeddleError('TOOL_INVALID', `${folder.file} must have a class with a \`name\` as its default export`)
  }
  const Class = module.default as ToolClass
  // A tool may use its runtime in its constructor, when only a static name can be read yet.
  let tool: Tool | undefined
  const staticName = (Class as unknown as { toolName?: unknown }).toolName
  tool = new Class(
    runtimeFor(() => tool?.name ?? (typeof staticName === 'string' ? staticName : basename(folder.path))),
  )
  if (typeof tool.name !== 'string' || tool.name === '') {
    throw new HeddleError('TOOL_INVALID', `The tool in ${folder.path} has no \`name\``)
  }
  return tool
}

/** True for the name of a file that is loaded as a plugin where it is in a folder of those. */
export const isPluginFile = (name: string): boolean =>
  /\.(?:[cm]?[jt]s|[jt]sx)$/.test(name) && !/\.(?:d|test)\.[cm]?tsx?$/.test(name) && !/^[._]/.test(name)

/** Plugin files of all domain folders, in the order of DOMAINS_DIR, then of names. */
export function findPlugins(domainsDirs: readonly string[]): PluginFile[] {
  return domainsDirs.flatMap((root) => {
    requireFolder(root)
    return partsOf(root, 'plugins').flatMap(({ domain, path: folder }) =>
      readdirSync(folder)
        .filter(isPluginFile)
        .sort()
        .map((name): PluginFile => {
          const path = join(folder, name)
          requireFile(path)
          const text = readFileSync(path, 'utf8')
          const isPrimary = PRIMARY_CLASS.test(text) || PRIMARY_FUNCTION.test(text)
          return { domain, path, thread: isPrimary ? 'primary' : 'worker' }
        }),
    )
  })
}

/** The name of the class that a file is named after: `create-user.ts` → `CreateUser`. */
export function classNameOf(file: string): string {
  const stem = basename(file).replace(/\.\w+$/, '')
  return stem.replace(/(?:^|[-_.])(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** A pipe would block until somebody writes, and a device has no end. @throws PLUGIN_INVALID */
function requireFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true)
    throw new HeddleError('PLUGIN_INVALID', `${path} is not a file`)
}

/** @throws CONFIG_INVALID for a folder of DOMAINS_DIR that does not exist, with the name that was probably meant */
export function requireFolder(root: string): void {
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === true) return
  const parent = dirname(root)
  const meant = nearestName(basename(root), foldersOf(parent))
  const hint = meant === undefined ? 'create it, or correct the variable' : `did you mean ${join(parent, meant)}?`
  throw new HeddleError('CONFIG_INVALID', `DOMAINS_DIR: there is no folder ${root}. Fix: ${hint}`)
}
