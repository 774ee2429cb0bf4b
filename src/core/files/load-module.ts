import { pathToFileURL } from 'node:url'

declare const require: ((file: string) => Record<string, unknown>) | undefined

/**
 * Loads a source file the way this very file was loaded.
 * On Node 20 tsx serves the modules of a worker thread through `require`, and `import()` would not know TypeScript there;
 * on Node 22 it would, but make a second instance of every module that the first ones share. So a lane never mixes the two.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  if (typeof require === 'function') return require(file)
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>
}
