import { pathToFileURL } from 'node:url'

declare const require: ((file: string) => Record<string, unknown>) | undefined

/**
 * Loads a source file in the same way in which this file was loaded: `import()` would make a second instance of every module that was loaded with
 * `require`. Under tsx or Node's own stripping of types the process loads ES modules.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  if (typeof require === 'function') return require(file)
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>
}
