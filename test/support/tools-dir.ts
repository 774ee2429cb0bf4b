import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, symlink } from 'node:fs/promises'
import { basename, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './folder.ts'
import type { Owner } from './heddle.ts'

const TOOLS = fileURLToPath(new URL('../../src/tools', import.meta.url))
const EXTRAS = fileURLToPath(new URL('../../src/extras', import.meta.url))

/**
 * A folder of tools for `TOOLS_DIR`, in which the named implementations stand for the active ones of the same tools, wherever they are parked:
 * what `npm run tools -- use` does, without moving anything. A folder elsewhere is named by its absolute path. Modules are links, so that the imports of a tool hold.
 */
export async function toolsDirWith(t: Owner, ...implementations: string[]): Promise<string> {
  const wanted = implementations.map((name) => {
    if (isAbsolute(name)) return name
    const folder = [join(EXTRAS, name), join(TOOLS, name)].find((path) => existsSync(path))
    if (folder === undefined) throw new Error(`There is no implementation ${name} in ${EXTRAS} nor in ${TOOLS}`)
    return folder
  })
  const replaced = new Set(wanted.map(toolOf))
  const active = (await readdir(TOOLS))
    .map((name) => join(TOOLS, name))
    .filter((folder) => !replaced.has(toolOf(folder)))
  const directory = temporaryFolder(t)
  for (const folder of [...active, ...wanted]) {
    const place = join(directory, basename(folder))
    await mkdir(place)
    await symlink(join(folder, 'index.ts'), join(place, 'index.ts'))
  }
  return directory
}

/** The name of the tool that a folder implements. */
function toolOf(folder: string): string {
  const name = /^\s*(?:override )?(?:readonly )?name(?:: \w+)? = '(\w+)'/m.exec(
    readFileSync(join(folder, 'index.ts'), 'utf8'),
  )?.[1]
  if (name === undefined) throw new Error(`${folder} has no class with a literal \`name\``)
  return name
}
