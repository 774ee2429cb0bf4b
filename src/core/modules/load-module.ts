import { pathToFileURL } from 'node:url'

declare const require: ((file: string) => Record<string, unknown>) | undefined

/**
 * Loads a source file in the same way in which this file was loaded.
 * On Node 20 tsx loads the modules of a worker thread with `require`, and `import()` cannot load TypeScript there. On Node 22 `import()`
 * can, but it would make a second instance of every module that was loaded before. So a lane never mixes the two.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  if (typeof require === 'function') return require(file)
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>
}
