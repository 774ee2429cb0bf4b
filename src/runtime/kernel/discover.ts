import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Tool, ToolClass, ToolRuntime } from '../../contracts/tool.ts'
import { nearestName } from '../../core/config/nearest-name.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { loadModule } from '../../core/modules/load-module.ts'
import { packageFault } from '../../core/modules/optional-package.ts'

/** A folder that holds a tool. */
export interface ToolFolder {
  path: string
  file: string
}

/** A file that holds a plugin. */
export interface PluginFile {
  domain: string
  path: string
  /** The thread that hosts it, read from the text: the code of a worker plugin must not even be loaded in the primary. */
  thread: 'primary' | 'worker'
}

const PRIMARY_CLASS = /\bstatic\s+(?:(?:override|readonly)\s+)*thread\s*(?::[^=]+)?=\s*(['"`])primary\1/
/** `plugin(…, { thread: 'primary' })` */
const PRIMARY_FUNCTION = /^export\s+default\s+plugin\b[\s\S]*,\s*\{[^{}]*\bthread\s*:\s*(['"`])primary\1/m

/** Folders of the tools directory, in the order of their names. */
export function findTools(toolsDir: string): ToolFolder[] {
  if (!existsSync(toolsDir)) throw new HeddleError('CONFIG_INVALID', `TOOLS_DIR: there is no folder ${toolsDir}`)
  return readdirSync(toolsDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => join(toolsDir, entry.name))
    .sort()
    .flatMap((path) => {
      const file = ['index.ts', 'index.js', 'index.mjs']
        .map((name) => join(path, name))
        .find((name) => existsSync(name))
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

/** Plugin files of all domain folders, in the order of DOMAINS_DIR, then of names. */
export function findPlugins(domainsDirs: readonly string[]): PluginFile[] {
  return domainsDirs.flatMap((root) => {
    requireFolder(root)
    return foldersOf(root).flatMap((domain) => {
      const folder = join(root, domain, 'plugins')
      if (!existsSync(folder)) return []
      return readdirSync(folder)
        .filter((name) => /\.(ts|js|mjs)$/.test(name) && !/(\.d|\.test)\.ts$/.test(name) && !/^[._]/.test(name))
        .sort()
        .map((name): PluginFile => {
          const path = join(folder, name)
          requireFile(path)
          const text = readFileSync(path, 'utf8')
          const isPrimary = PRIMARY_CLASS.test(text) || PRIMARY_FUNCTION.test(text)
          return { domain, path, thread: isPrimary ? 'primary' : 'worker' }
        })
    })
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
  if (existsSync(root)) return
  const parent = dirname(root)
  const meant = existsSync(parent) ? nearestName(basename(root), foldersOf(parent)) : undefined
  const hint = meant === undefined ? 'create it, or correct the variable' : `did you mean ${join(parent, meant)}?`
  throw new HeddleError('CONFIG_INVALID', `DOMAINS_DIR: there is no folder ${root}. Fix: ${hint}`)
}

function foldersOf(root: string): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort()
}
