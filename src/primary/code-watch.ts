import { type FSWatcher, watch } from 'node:fs'
import { messageOf } from '../errors/wire.ts'

/** Saving some files takes an editor several changes: they count as one, milliseconds. */
const SETTLE_MS = 50
const IS_CODE = /\.(?:[cm]?[jt]s|json)$/

/**
 * Tells when code in some folders has changed, for `npm run dev`.
 * @returns a function that ends it
 */
export function watchCode(
  directories: readonly string[],
  onChange: (file: string) => void,
  onFault: (message: string) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers: FSWatcher[] = []
  for (const directory of directories) {
    const watcher = watch(directory, { recursive: true }, (_, file) => {
      if (file === null || !IS_CODE.test(file) || file.includes('node_modules')) return
      clearTimeout(timer)
      timer = setTimeout(() => onChange(file), SETTLE_MS)
    })
    watcher.on('error', (error) => onFault(`${directory} is not watched any more: ${messageOf(error)}`))
    watchers.push(watcher)
  }
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers) watcher.close()
  }
}
