import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Every TypeScript source below a folder of the repository: path from the root → text. */
export function sourcesIn(folder: string): Map<string, string> {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  return new Map(names.map((name) => [join(folder, name), readFileSync(join(ROOT, folder, name), 'utf8')]))
}
