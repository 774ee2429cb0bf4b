import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../core/errors/description.ts'

/** Milliseconds without a change after which all changes count as one: saving a file or checking out a branch causes several. */
const SETTLE_MS = 50
const IS_SOURCE = /\.(?:[cm]?[jt]sx?|json|sql|html|css|svg)$/
/** Files that editors write beside a file while it is edited, and files that no thread loads. */
const IS_IGNORED = /^\.|\.(?:test|spec|d)\.[cm]?[jt]sx?$/

export interface CodeWatchOptions {
  /** Folders to watch, with all folders below them. */
  folders: readonly string[]
  /** Single files to watch that are not sources. Other files beside them do not count. */
  files?: readonly string[]
  /** Called with the absolute paths of the files that have changed since the last call. */
  onChange: (files: string[]) => void
  onFault: (message: string) => void
}

/**
 * Reports changes of sources, for `npm run dev`.
 * Each folder has a watcher of its own: on Linux Node's recursive watcher watches every single file, and loses a file that an editor
 * replaces by another.
 * @returns a function that ends the watch
 */
export function watchCode({ folders, files = [], onChange, onFault }: CodeWatchOptions): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()
  const changed = new Set<string>()
  const isBelow = (path: string): boolean => folders.some((folder) => path === folder || path.startsWith(`${folder}/`))

  const onEntry = (path: string, name: string): void => {
    const isFile = files.includes(path)
    if (!isFile) {
      if (!isBelow(path) || name === 'node_modules') return
      if (isDirectory(path)) return add(path, true)
      // A removed folder needs a new watcher when one of the same name appears.
      watchers.get(path)?.close()
      watchers.delete(path)
      if (!IS_SOURCE.test(name) || IS_IGNORED.test(name)) return
    }
    changed.add(path)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const paths = [...changed]
      changed.clear()
      onChange(paths)
    }, SETTLE_MS)
  }

  const add = (directory: string, isNew: boolean): void => {
    if (!watchFolder(directory) || !isBelow(directory)) return
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules') add(path, isNew)
      // The file was written before its folder was watched.
      else if (isNew) onEntry(path, entry.name)
    }
  }

  /** @returns false when the folder is watched already, or cannot be watched */
  const watchFolder = (directory: string): boolean => {
    if (watchers.has(directory)) return false
    try {
      const watcher = watch(directory, (_, name) => {
        if (name !== null) onEntry(join(directory, name), name)
      })
      watcher.on('error', (error) => onFault(`${directory} is not watched any more: ${messageOf(error)}`))
      watchers.set(directory, watcher)
      return true
    } catch (error) {
      if (isDirectory(directory)) onFault(`${directory} is not watched: ${messageOf(error)}`)
      return false
    }
  }

  for (const folder of folders) add(folder, false)
  for (const file of files) watchFolder(join(file, '..'))
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
