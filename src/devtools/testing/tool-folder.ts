import { existsSync, readFileSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { findTools, type ToolFolder } from '../../runtime/kernel/discover.ts'

/** Implementations that need no server, by the tool's name. */
const IN_MEMORY = { db: 'sqlite', state: 'memory-state' } as const

/** The tools folder, or, when another database or store is active, a folder of links in which these two replace it. */
export async function inMemoryTools(toolsDir: string, directory: string): Promise<string> {
  const active = findTools(toolsDir)
  const isActive = (name: string): boolean => active.some(({ path }) => basename(path) === name)
  const missing = Object.entries(IN_MEMORY).filter(([, implementation]) => !isActive(implementation))
  if (missing.length === 0) return toolsDir
  const place = join(directory, 'tools')
  const kept = active.filter((folder) => !missing.some(([tool]) => holds(folder, tool)))
  const parked = missing.map(([, implementation]) => join(dirname(toolsDir), 'extras', implementation, 'index.ts'))
  for (const file of [...kept.map(({ file }) => file), ...parked.filter((file) => existsSync(file))]) {
    const folder = join(place, basename(dirname(file)))
    await mkdir(folder, { recursive: true })
    await symlink(file, join(folder, basename(file)))
  }
  return place
}

function holds({ file }: ToolFolder, tool: string): boolean {
  return new RegExp(`\\bname(?::\\s*\\w+)? = (['"])${tool}\\1`).test(readFileSync(file, 'utf8'))
}
