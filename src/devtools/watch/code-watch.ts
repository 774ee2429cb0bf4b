import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../core/errors/wire.ts'

/** Saving some files takes an editor several changes, and a checkout changes many: they count as one, milliseconds. */
const SETTLE_MS = 50
const IS_SOURCE = /\.(?:[cm]?[jt]sx?|json|sql|html|css|svg)$/
/** What editors write beside a file while it is edited, and what no thread loads. */
const IS_PASSED_OVER = /^\.|\.(?:test|spec|d)\.[cm]?[jt]sx?$/

export interface CodeWatchOptions {
  /** Folders that are watched with all below them. */
  folders: readonly string[]
  /** Single files that are no source, beside which nothing else counts. */
  files?: readonly string[]
  /** Gets the absolute paths of all that has changed since last time. */
  onChange: (files: string[]) => void
  onFault: (message: string) => void
}

/**
 * Tells when sources have changed, for `npm run dev`.
 * Each folder has a watcher of its own: on Linux Node's recursive one watches every file, and loses those that an editor puts
 * another in the place of.
 * @returns a function that ends it
 */
export function watchCode({ folders, files = [], onChange, onFault }: CodeWatchOptions): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()
  const changed = new Set<string>()
  const isBelow = (path: string): boolean => folders.some((folder) => path === folder || path.startsWith(`${folder}/`))

  const seen = (path: string, name: string): void => {
    const isFile = files.includes(path)
    if (!isFile) {
      if (!isBelow(path) || name === 'node_modules') return
      if (isDirectory(path)) return add(path, true)
      // A folder that is gone is watched no more: one of the same name would be another.
      watchers.get(path)?.close()
      watchers.delete(path)
      if (!IS_SOURCE.test(name) || IS_PASSED_OVER.test(name)) return
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
    if (!open(directory) || !isBelow(directory)) return
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules') add(path, isNew)
      // It was written before its folder was watched.
      else if (isNew) seen(path, entry.name)
    }
  }

  /** @returns false when it is watched already, or cannot be */
  const open = (directory: string): boolean => {
    if (watchers.has(directory)) return false
    try {
      const watcher = watch(directory, (_, name) => {
        if (name !== null) seen(join(directory, name), name)
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
  for (const file of files) open(join(file, '..'))
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
