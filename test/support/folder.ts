import { mkdtempSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Owner } from './heddle.ts'

const SHIPPED_TOOLS = fileURLToPath(new URL('../../src/tools', import.meta.url))

/** An empty folder, gone with the test. */
export function temporaryFolder(t: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-test-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** A folder with some files, gone with the test. Its plugins import nothing: a class alone is a plugin too. */
export async function folderOf(t: Owner, files: Record<string, string>): Promise<string> {
  const folder = temporaryFolder(t)
  for (const [path, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  return folder
}

/** A tools folder with everything that is shipped, and some more. */
export async function toolsWith(t: Owner, more: Record<string, string>): Promise<string> {
  const shipped = await readdir(SHIPPED_TOOLS, { withFileTypes: true })
  const files: Record<string, string> = {}
  for (const entry of shipped) {
    if (!entry.isDirectory()) continue
    files[`${entry.name}/index.ts`] =
      `export { default } from ${JSON.stringify(join(SHIPPED_TOOLS, entry.name, 'index.ts'))}\n`
  }
  return folderOf(t, { ...files, ...more })
}
