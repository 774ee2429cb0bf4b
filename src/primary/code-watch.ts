import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { join, relative } from 'node:path'
import { messageOf } from '../errors/wire.ts'

/** Saving some files takes an editor several changes: they count as one, milliseconds. */
const SETTLE_MS = 50
const IS_CODE = /\.(?:[cm]?[jt]s|json)$/

/**
 * Tells when code in some folders has changed, for `npm run dev`.
 * Each folder has a watcher of its own: on Linux Node's recursive one watches every file, and loses those that an editor puts
 * another in the place of.
 * @returns a function that ends it
 */
export function watchCode(
  directories: readonly string[],
  onChange: (file: string) => void,
  onFault: (message: string) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()

  const seen = (root: string, path: string): void => {
    if (path.includes('node_modules')) return
    if (isDirectory(path)) return add(root, path, true)
    // A folder that is gone is watched no more: one of the same name would be another.
    watchers.get(path)?.close()
    watchers.delete(path)
    if (!IS_CODE.test(path)) return
    clearTimeout(timer)
    timer = setTimeout(() => onChange(relative(root, path)), SETTLE_MS)
  }

  const add = (root: string, directory: string, isNew: boolean): void => {
    if (watchers.has(directory)) return
    try {
      const watcher = watch(directory, (_, name) => {
        if (name !== null) seen(root, join(directory, name))
      })
      watcher.on('error', (error) => onFault(`${directory} is not watched any more: ${messageOf(error)}`))
      watchers.set(directory, watcher)
    } catch (error) {
      if (isDirectory(directory)) onFault(`${directory} is not watched: ${messageOf(error)}`)
      return
    }
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules') add(root, path, isNew)
      // It was written before its folder was watched.
      else if (isNew) seen(root, path)
    }
  }

  for (const directory of directories) add(directory, directory, false)
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
